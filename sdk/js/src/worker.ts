/** The service worker as a script for `importScripts`: it listens as soon as it is loaded. */

import { listen, type WorkerOptions } from "./sw.js";

listen((globalThis as { waypost?: WorkerOptions }).waypost);
