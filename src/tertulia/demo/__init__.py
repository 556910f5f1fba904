"""`tertulia demo`: a group of three people and a bot that is killed in mid-answer, without a model or a service.

The bot is a process of its own with a real engine, store, memory and tools; only its model is scripted. The people
write to it through pipes. What is shown was read from the bot's store, or came through the pipes.
"""
