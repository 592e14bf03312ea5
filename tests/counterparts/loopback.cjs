// Preloaded into servers that would listen on every interface: they listen on the loopback only, and the
// port, which may be any with PORT=0, is printed.
'use strict';
const net = require('node:net');
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) {
  const callbacks = rest.filter((argument) => typeof argument === 'function');
  this.once('listening', () => console.log(`loopback port ${this.address().port}`));
  return listen.call(this, Number(port), '127.0.0.1', ...callbacks);
};
