/** What is kept in the browser: one table of IndexedDB, which pages, workers and service workers share. */

const DATABASE = "waypost";
const TABLE = "kept";

/** A place for values by name. */
export interface Storage {
  get<T>(key: string): Promise<T | undefined>;
  set(key: string, value: unknown): Promise<void>;
  delete(key: string): Promise<void>;
  /** Put what `change` makes of the value, with nobody else's change in between; what it made. */
  update<T>(key: string, change: (value: T | undefined) => T): Promise<T>;
}

/** Keeps values in memory: where a browser keeps nothing, as some do in private windows. */
export class MemoryStorage implements Storage {
  #values = new Map<string, unknown>();

  async get<T>(key: string): Promise<T | undefined> {
    return this.#values.get(key) as T | undefined;
  }

  async set(key: string, value: unknown): Promise<void> {
    this.#values.set(key, structuredClone(value));
  }

  async delete(key: string): Promise<void> {
    this.#values.delete(key);
  }

  async update<T>(key: string, change: (value: T | undefined) => T): Promise<T> {
    const made = change(this.#values.get(key) as T | undefined);
    this.#values.set(key, made);
    return made;
  }
}

/** Keeps values in IndexedDB; in memory where that is refused. */
export class BrowserStorage implements Storage {
  #memory = new MemoryStorage();
  #opened: Promise<IDBDatabase> | undefined;

  get<T>(key: string): Promise<T | undefined> {
    return this.#do<T | undefined>("readonly", (table) => table.get(key)).catch(() => this.#memory.get<T>(key));
  }

  async set(key: string, value: unknown): Promise<void> {
    await this.#do("readwrite", (table) => table.put(value, key)).catch(() => this.#memory.set(key, value));
  }

  async delete(key: string): Promise<void> {
    await this.#do("readwrite", (table) => table.delete(key)).catch(() => this.#memory.delete(key));
  }

  update<T>(key: string, change: (value: T | undefined) => T): Promise<T> {
    let made: T;
    const act = (table: IDBObjectStore) => {
      const read = table.get(key);
      read.onsuccess = () => table.put((made = change(read.result as T | undefined)), key);
      return read;
    };
    return this.#do("readwrite", act).then(
      () => made,
      () => this.#memory.update(key, change),
    );
  }

  async #do<T>(mode: IDBTransactionMode, act: (table: IDBObjectStore) => IDBRequest): Promise<T> {
    const database = await (this.#opened ??= opened());
    return new Promise((resolve, reject) => {
      const transaction = database.transaction(TABLE, mode);
      const request = act(transaction.objectStore(TABLE));
      transaction.oncomplete = () => resolve(request.result as T);
      transaction.onabort = () => reject(transaction.error);
    });
  }
}

function opened(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(TABLE);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
