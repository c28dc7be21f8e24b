"""Processes that run the calls of a pre-check: the other end of `plumb precheck`.

`plumbline.precheck()` is the function for users; nothing here is. `server` is the program that
`plumb` starts (`python -m plumbline.precheck_run.server`): it imports a framework once and forks an
executor per request. `executor` is the loop of one executor and its shared memory, `values` the
JSON of arguments and results, and one module per framework (`pytorch`) runs the calls.
"""
