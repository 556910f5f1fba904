"""The decoder: a process that decodes one file which somebody sent, within limits, and ends.

`tertulia.media.decoding` starts it; nothing else imports these modules. They import nothing of tertulia but each other.
"""
