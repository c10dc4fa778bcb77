"""Whether a lease can be had."""

import threading

from kevin_env.judge.lease import Lease


def taken(lease: Lease, how: str, within: float) -> bool:
    """Whether the lease can be had in time; gives it back."""
    done = threading.Event()

    def take() -> None:
        with getattr(lease, how)():
            done.set()

    threading.Thread(target=take, daemon=True).start()
    return done.wait(within)
