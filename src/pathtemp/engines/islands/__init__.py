"""Islands: several runs of the default engine that search and adapt apart, and are judged together.

An island is a run of the driver that waits for the others at two stages, see ``island``; ``archipelago`` unites their
lists of modes between them, ``pool`` joins what their frozen rounds leave, and ``workers`` says where they run.
"""
