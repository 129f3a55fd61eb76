"""What every test may rely on."""

from __future__ import annotations

import signal

# A shell that starts a job in the background has it ignore Ctrl-C, and so would all that the job starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
