// The worker's script in Node.
import './self.js';
import '../worker.js';
