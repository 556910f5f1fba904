"""`tertulia db move`: a whole store, its rows and its files of media, to an empty one."""

import os
from contextlib import closing
from pathlib import Path

from tertulia.errors import InvalidValue
from tertulia.store import transfer
from tertulia.store.media_folder import copy_folder, discard_copied, find_folder
from tertulia.store.opening import driver_of, open_alone
from tertulia.store.transfer import Progress
from tertulia.store_url import is_url, masked


def move_store(source: str, target: str, progress: Progress = lambda done, total: None) -> int:
    """Copy a store to an empty one, and compare all rows; return their number. No bot may have either open.

    The source is not changed. A move that was killed goes on when it is run again.
    """
    named = masked(source) if is_url(source) else os.path.realpath(source)
    if named == (masked(target) if is_url(target) else os.path.realpath(target)):
        raise InvalidValue(f"{masked(source)} is both the source and the target")
    from_, to = driver_of(source), driver_of(target)
    with open_alone(from_, new=False) as old, open_alone(to, new=True) as new:
        try:
            with from_.translating():
                transfer.refuse_incomplete(old)
            with to.translating():
                transfer.begin_move(new, named)
            old.begin_reading()
            transfer.copy_rows(old, new, progress)
            new.begin_reading()
            transfer.check_rows(old, new)
            moved = transfer.count(new)
            new.undo()
            with closing(find_folder(old, from_.files)) as folder:
                discard_copied(new, to.files)
                if folder.exists:
                    copy_folder(new, Path(to.files), folder)
            transfer.end_move(new)
            return moved
        except (*old.errors, *new.errors) as error:
            side = new if isinstance(error, new.errors) else old
            raise side.translate(error) from error
        finally:
            old.undo()
            new.undo()
