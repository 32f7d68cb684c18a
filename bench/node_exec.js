// The ceiling of any Node implementation: bare http answering the three events as constants.
const http = require('http');
const content = 'Session info\n---\ncwd:       ~/\nfile:      (none open)\nhistory:   0 entries\nstring:    v0.1.0';

http.createServer((request, response) => {
  const parts = [];
  request.on('data', (part) => parts.push(part));
  request.on('end', () => {
    if (request.url === '/users') {
      response.writeHead(200, { 'Content-Type': 'application/json' });
      response.end('{}');
      return;
    }
    const body = JSON.parse(Buffer.concat(parts).toString('utf8'));
    const head = {
      ok: true, code: null, cmd: body.cmd, request_id: body.request_id ?? null,
      user_id: request.headers['x-user-id'], topic: body.topic, topic_type: 'file', meta: null,
    };
    response.writeHead(200, {
      'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache', 'Connection': 'keep-alive',
      'X-Accel-Buffering': 'no', 'Access-Control-Allow-Origin': '*',
      'Access-Control-Allow-Headers': 'Content-Type, X-User-Id',
    });
    response.write('event: head\ndata: ' + JSON.stringify(head) + '\n\n');
    response.write('event: content\ndata: ' + JSON.stringify('re: ' + body.cmd + '\n' + content) + '\n\n');
    response.write('event: done\ndata: {}\n\n');
    response.end();
  });
}).listen(Number(process.argv[2]), '127.0.0.1');
