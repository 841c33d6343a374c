package postgres

import "strings"

// Other roles may create functions and operators in a schema of the host's path, and
// whoever calls one of them runs it with his own rights. Two things keep the store from
// that. Its statements name what they use so that nothing in another schema fits better
// (see qualify); and they run on a path of our own, so that nothing is looked for elsewhere
// even where the host's path has public before pg_catalog. The statements of TriggerTx run
// on the host's path and name the schema of each operator as well.

// ourPath is the search_path of all that is the store's alone.
const ourPath = "pg_catalog, pg_temp"

// setOurPath goes in front of statements that have no transaction of ours around them, in
// the same message or pipeline. The server makes one transaction of that, and the settings
// end with it. JIT is off there too: a plan for all arguments does not know that a page is
// short, and would be compiled for seconds to read a hundred rows.
const setOurPath = mark + "select pg_catalog.set_config('search_path', '" + ourPath + "', true), pg_catalog.set_config('jit', 'off', true)"

// prefersOthers reports whether a search_path looks anywhere before pg_catalog. A statement
// that is prepared on such a path may come to another understanding there than it has when
// it is executed on ours, which the server refuses.
func prefersOthers(path string) bool {
	path = strings.ToLower(strings.TrimLeft(path, `" `))
	return strings.Contains(path, "pg_catalog") && !strings.HasPrefix(path, "pg_catalog")
}
