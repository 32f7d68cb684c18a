# A small image of the daemon. docs/operations.md#containers says how to use it and what it costs.
FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml requirements.lock README.md CHANGELOG.md LICENSE ./
COPY scripts/string scripts/string
COPY src src
RUN python -m venv /opt/stringd \
 && /opt/stringd/bin/pip install --no-cache-dir --disable-pip-version-check -c requirements.lock '.[otel,tui]'

FROM python:3.11-slim
COPY --from=build /opt/stringd /opt/stringd
# Everybody may write here: compose runs the image as the account that will call it.
RUN mkdir -m 1777 /home/agent
ENV PATH=/opt/stringd/bin:$PATH \
    HOME=/home/agent \
    STRINGD_DATA_DIR=/home/agent/.string/daemon
USER 1000:1000
WORKDIR /home/agent
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["stringd", "status"]
ENTRYPOINT ["stringd"]
CMD ["serve"]
