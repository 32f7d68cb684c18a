wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["X-User-Id"] = "bench"
wrk.headers["Accept"] = "text/event-stream"
wrk.body = '{"cmd":"/info","topic":"file:main"}'

done = function(summary, latency, requests)
  io.write(string.format('RESULT {"requests":%d,"duration_us":%d,"p50_us":%d,"errors":%d}\n',
    summary.requests, summary.duration, latency:percentile(50),
    summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.write))
end
