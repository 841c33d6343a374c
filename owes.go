package xxljob

// What the success of a trigger owes to other jobs. It is pure. Input: the run with which the
// trigger has succeeded, its job, the jobs that run behind that. Output: what is owed.

import (
	"github.com/xxljob/xxljob/store"
)

// Owes, for authors of stores, says what a run owes with whose end its trigger has succeeded:
// the last attempt, and every part of a broadcast. The job is as it is now, nil where it is
// removed; joins are the IDs of the jobs that have it in After or AfterKeys, by its ID or by
// its App and Key.
func (r Run) Owes(job *Job, joins []int64) (owed []store.Owed) {
	if r.State != StateSucceeded || job == nil {
		return nil
	}
	one := store.Owed{
		RunID: r.ID, TriggerID: r.TriggerID, ParentID: r.JobID, Shard: r.Shard,
		Business: r.BusinessTime(), Depth: r.Depth + 1, Trace: r.Trace,
	}
	child := one
	child.Param = r.childParam(job)
	for _, id := range job.Children {
		child.JobID = id
		owed = append(owed, child)
	}
	child.JobID = 0
	for _, ref := range job.ChildKeys {
		child.App, child.Key, _ = store.SplitRef(ref)
		owed = append(owed, child)
	}
	one.Join = true
	for _, id := range joins {
		one.JobID = id
		owed = append(owed, one)
	}
	return owed
}

// childParam is the parameter that children of the run are given; nil for their own.
func (r *Run) childParam(job *Job) *string {
	switch job.ChildParam {
	case ChildParamParent:
		return new(r.Param)
	case ChildParamResult:
		return new(store.Cut(r.HandleMsg, maxParam))
	}
	return nil
}
