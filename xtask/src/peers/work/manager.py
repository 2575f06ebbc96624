"""Work that is shared out among processes."""

import multiprocessing


def add(total, lock):
    for _ in range(10):
        with lock:
            total["sum"] = total.get("sum", 0) + 1


if __name__ == "__main__":
    with multiprocessing.Manager() as manager:
        total, lock = manager.dict(), manager.Lock()
        workers = [multiprocessing.Process(target=add, args=(total, lock)) for _ in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert total["sum"] == 30, total
