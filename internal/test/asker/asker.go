// Package asker says who calls which method of a store. Only tests import it: those of
// the scheduler hold its calls against it, those of store/postgres what the store keeps
// back for the loops.
//
// Comes in: the methods of the interfaces of stores. Goes out: for each of them, whether
// runs wait for it.
package asker

import (
	"reflect"
	"slices"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

// Asker is who calls a method: the scheduler's loops, as their duty, or whoever may wait,
// such as hosts, the looks at lists and what tidies up.
type Asker int

// The zero Asker is nobody: the method is not in the table.
const (
	Loops Asker = iota + 1
	Others
	Both
)

// Table has every method of Methods. Whoever adds a method says here whether runs wait
// for it.
func Table() map[string]Asker {
	return map[string]Asker{
		"AddJob": Others, "EditJob": Others, "RemoveJob": Others, "Job": Others, "JobByKey": Others, "Jobs": Both, "Changes": Others,
		"PutList": Others, "Lists": Others, "NameJobs": Others, "UnnameJob": Others, "AddJobs": Others,
		"SaveGroup": Others, "EnsureGroup": Others, "RemoveGroup": Others, "Group": Both, "Groups": Others,
		"AddRun": Others, "AddAhead": Others, "Finish": Loops, "SetProgress": Others, "Kill": Both, "Run": Both, "RunsByID": Both, "Tree": Others, "Runs": Both,
		"SetShards": Both, "Scan": Loops, "Planned": Loops, "Claim": Loops, "MoveAhead": Loops, "Sweep": Loops,
		"Start": Loops, "Readdress": Loops, "Dispatched": Loops, "StartedBy": Loops, "DispatchedRuns": Loops, "Settle": Loops, "Inbox": Loops, "Take": Loops,
		"PayOwed": Loops, "ExpireWindows": Loops, "Links": Others,
		"KeepRules": Both, "HoldRule": Both, "Rules": Others, "DropRules": Others, "Alarms": Others, "MarkAlarms": Others, "ToldJobs": Others, "OpenAlarms": Others, "AddLate": Loops,
		"AskLog": Both, "AnswerLog": Both, "LogAnswer": Both, // for lines of logs, and for where runs go
		"Now": Both, "Join": Loops, "Beat": Loops, "SetFailing": Loops, "Leave": Loops, "Bury": Loops, "TakeShards": Loops, "ReleaseShards": Loops,
		"PutAddresses": Both, "DropAddresses": Both, "Addresses": Both, "Registrations": Others, "ForgetAddresses": Others, "NoteServed": Both, "Served": Both,
		"DropRuns": Others,
	}
}

// Methods returns the names of the methods of xxljob.Store and store.Retainer that can
// fail, in alphabetical order.
func Methods() []string {
	var names []string
	for _, of := range []reflect.Type{reflect.TypeFor[xxljob.Store](), reflect.TypeFor[store.Retainer]()} {
		for i := range of.NumMethod() {
			if m := of.Method(i); m.Type.NumOut() > 0 && m.Type.Out(m.Type.NumOut()-1) == reflect.TypeFor[error]() {
				names = append(names, m.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}
