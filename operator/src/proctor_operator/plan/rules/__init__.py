"""One policy per module; a rule answers with a step or leaves the question to the next one."""
