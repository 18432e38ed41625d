"""Objects with coroutines, asked from tests that have no event loop."""

import asyncio
import inspect


class Asked:
    """Calls the coroutines of an object to their end."""

    def __init__(self, asked):
        self.asked = asked

    def __getattr__(self, name):
        found = getattr(self.asked, name)
        if not inspect.iscoroutinefunction(found):
            return found
        return lambda *arguments, **more: asyncio.run(found(*arguments, **more))
