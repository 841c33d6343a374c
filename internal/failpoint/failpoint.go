// Package failpoint names the places in store/postgres at which a fault can be
// made to happen: inside a transaction before its main statement, before its
// commit, and after its commit. Without the build tag failpoint, Hit is empty and
// is compiled away. With it, a process reads what to do from its environment and
// from a file that may change while it runs (see the file on.go).
//
// Input: the name of the place. Output: nothing, or the fault.
package failpoint

// Methods are the store's methods that have failpoints, in the order in which a
// trigger meets them.
func Methods() []string {
	return []string{
		"claim", "start", "finish", "take", "settle", "readdress", "dispatched", "sweep",
		"pay_owed", "expire_windows", "add_late", "mark_alarms",
		"ask_log", "answer_log",
		"take_shards", "release", "join", "beat", "leave", "bury",
		"add_job", "edit_job", "remove_job", "add_run", "add_ahead", "move_ahead", "kill", "trigger_tx",
	}
}

// The places within a method.
const (
	// Begin is inside the transaction, before its main statement.
	Begin = "begin"
	// BeforeCommit is behind the last statement and before the commit.
	BeforeCommit = "before_commit"
	// AfterCommit is behind the commit, before anything in memory knows of it.
	AfterCommit = "after_commit"
)

// Places are the places of one method, in order.
func Places() []string { return []string{Begin, BeforeCommit, AfterCommit} }

// All returns every failpoint, "method.place".
func All() []string {
	var all []string
	for _, m := range Methods() {
		for _, p := range Places() {
			all = append(all, m+"."+p)
		}
	}
	return all
}
