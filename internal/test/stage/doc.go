// Package stage has what the tests of the scheduler share: nodes of a cluster in a bubble that
// can be paused and that fail, a journal of what their handlers have seen, an audit of runs
// against what was due, stores, executors and registries that misbehave, and schedulers and
// requests over HTTP. Its functions take the test that calls them, and end it where something
// goes wrong that is not what it tests. Only tests import it.
package stage
