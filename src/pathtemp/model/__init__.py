"""What is tempered: a base and a target on one flat vector, with names, transforms, and the checks before sampling.

Front ends make models; paths and engines take them.
"""
