package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

func listCases() []testCase {
	return []testCase{
		{"NewerAppliesUnlessTheHeadIsGreater", newerApplies},
		{"AlwaysAndNeverApply", alwaysNever},
		{"InsteadComparesTheHeadAndTheListsOfOthers", insteadApplies},
		{"AListIsOfANodeThatIsThere", listOfNode},
		{"AListTakesThePlaceOfTheFormer", listReplaced},
		{"ListsAreThoseOfTheApp", listsOfApp},
		{"NameJobsReturnsAndNotes", namesJobs},
		{"NameJobsInAnotherGenerationChangesNothing", namesSuperseded},
		{"AnotherListOfTheGenerationIsAnotherList", sameGeneration},
		{"UnnameJobIsTheOppositeOfNameJobs", unnamesJob},
		{"AddJobsLeavesOutTakenKeys", addsJobs},
		{"AddJobsKeepsEveryField", addsEveryField},
		{"AddJobsAllOrNone", addsAllOrNone},
		{"SurplusIsWhatNoListNames", surplusUnnamed},
		{"SurplusNeedsTheGeneration", surplusGeneration},
		{"SurplusNeedsAPruningListOfANodeThatIsThere", surplusNeedsList},
		{"SurplusIsEnabledAndWasNamed", surplusWasNamed},
		{"PrunedAreNamedAgain", prunedNamed},
		{"GuardOfAGeneration", guardGeneration},
		{"GuardOfSurplus", guardSurplus},
		{"AListOrAPruneComesFirst", pruneRace},
		{"UnnameJobOrAPruneComesFirst", unnameRace},
	}
}

// list is a list of the app under test, which prunes.
func list(generation int64, keys ...string) store.JobList {
	return store.JobList{App: "app", Generation: generation, Prune: true, Digest: fmt.Sprint(keys), Keys: keys}
}

// putList puts a list of an incarnation, which is named as its node is.
func (e *env) putList(incarnation string, l store.JobList, how store.ListApply, over ...store.ListHead) store.ListHead {
	e.Helper()
	p := store.ListPut{JobList: l, Incarnation: incarnation, Node: "node-" + incarnation, Apply: how}
	if len(over) > 0 {
		p.Over = over[0]
	}
	head, err := e.PutList(e.ctx, p)
	e.must(err)
	return head
}

func (e *env) mustLists(incarnation string) store.ListView {
	e.Helper()
	v, err := e.Lists(e.ctx, "app", incarnation)
	e.must(err)
	return v
}

// wantHead compares what is stored, by whatever call it came about.
func (e *env) wantHead(what string, got store.ListHead, l store.JobList, incarnation string) {
	e.Helper()
	head := store.ListHead{Generation: l.Generation, Digest: l.Digest, Node: "node-" + incarnation}
	want(e, what+": the head returned", got, head)
	want(e, what+": the head stored", e.mustLists("nobody").Head, head)
}

// keyed adds enabled jobs with keys.
func (e *env) keyed(keys ...string) []store.Job {
	e.Helper()
	var jobs []store.Job
	for _, key := range keys {
		jobs = append(jobs, e.newJob(func(j *store.Job) { j.Key = key }))
	}
	return jobs
}

// mustName names jobs by the head, which is of the generation.
func (e *env) mustName(generation int64, keys ...string) []store.Job {
	e.Helper()
	jobs, err := e.NameJobs(e.ctx, store.ListID{App: "app", Generation: generation, Digest: e.mustLists("nobody").Head.Digest}, keys)
	e.must(err)
	return jobs
}

func newerApplies(e *env) {
	want(e, "head of an app without", e.putList("a", list(3, "x"), store.ApplyNever), store.ListHead{})
	e.wantHead("the first", e.putList("a", list(3, "x"), store.ApplyNewer), list(3, "x"), "a")
	e.wantHead("a greater generation", e.putList("b", list(5, "x"), store.ApplyNewer), list(5, "x"), "b")
	e.wantHead("a lesser generation", e.putList("c", list(4, "y"), store.ApplyNewer), list(5, "x"), "b")
	e.wantHead("the same list by another", e.putList("c", list(5, "x"), store.ApplyNewer), list(5, "x"), "b")
	e.wantHead("another list of the generation", e.putList("c", list(5, "y"), store.ApplyNewer), list(5, "y"), "c")
}

func alwaysNever(e *env) {
	e.putList("a", list(5, "x"), store.ApplyNewer)
	e.wantHead("never", e.putList("b", list(6, "y"), store.ApplyNever), list(5, "x"), "a")
	e.wantHead("always", e.putList("b", list(2, "y"), store.ApplyAlways), list(2, "y"), "b")
}

func insteadApplies(e *env) {
	high, low := list(5, "x"), list(4, "y")
	over := e.putList("a", high, store.ApplyNewer)
	e.there("a", "b", "c")
	e.putList("a", high, store.ApplyNever)
	e.wantHead("while a node has the head's list", e.putList("b", low, store.ApplyInstead, over), high, "a")
	e.putList("c", list(9, "z"), store.ApplyNever)
	e.must(e.Leave(e.ctx, "a"))
	e.wantHead("while a node has a greater one", e.putList("b", low, store.ApplyInstead, over), high, "a")
	e.must(e.Leave(e.ctx, "c"))
	other := over
	other.Digest = "of another"
	e.wantHead("over another head", e.putList("b", low, store.ApplyInstead, other), high, "a")
	e.wantHead("when none has", e.putList("b", low, store.ApplyInstead, over), low, "b")
}

func listOfNode(e *env) {
	e.putList("a", list(1, "x"), store.ApplyNewer)
	want(e, "lists of a node that is not there", e.mustLists("a").Nodes, nil)
	e.there("a", "b")
	want(e, "lists of a node that came later", e.mustLists("a").Nodes, nil)
	e.putList("a", list(1, "x"), store.ApplyNever)
	mine := store.NodeList{Incarnation: "a", Node: "node-a", JobList: list(1, "x")}
	mine.Keys = nil
	want(e, "lists", e.mustLists("b").Nodes, []store.NodeList{mine})
	e.must(e.Leave(e.ctx, "a"))
	want(e, "lists of a node that has left", e.mustLists("b").Nodes, nil)
	e.mustBeat("a")
	want(e, "lists of a node that is back", e.mustLists("b").Nodes, []store.NodeList{mine})
	e.must(e.Bury(e.ctx, "a", 2))
	e.mustBeat("a")
	want(e, "lists of a node that was buried", e.mustLists("b").Nodes, nil)
}

func listReplaced(e *env) {
	e.there("a")
	e.keyed("x", "y")
	e.putList("a", list(1, "x", "y"), store.ApplyNewer)
	e.mustName(1, "x", "y")
	second := list(2, "y")
	second.Prune = false
	e.putList("a", second, store.ApplyNewer)
	v := e.mustLists("a")
	second.Keys = nil
	want(e, "lists", v.Nodes, []store.NodeList{{Incarnation: "a", Node: "node-a", JobList: second}})
	want(e, "surplus of a list that does not prune", v.Surplus, nil)
	e.putList("a", list(2, "y"), store.ApplyNewer)
	x, err := e.JobByKey(e.ctx, "app", "x")
	e.must(err)
	want(e, "surplus", e.mustLists("a").Surplus, []int64{x.ID})
}

func listsOfApp(e *env) {
	e.there("a", "b")
	e.putList("b", list(1, "x"), store.ApplyNewer)
	other := list(7, "x")
	other.App = "other"
	e.putList("a", other, store.ApplyNewer)
	e.putList("a", list(1, "x"), store.ApplyNewer)
	v := e.mustLists("a")
	want(e, "head", v.Head, store.ListHead{Generation: 1, Digest: "[x]", Node: "node-b"})
	var of []string
	for _, n := range v.Nodes {
		of = append(of, n.App+"/"+n.Incarnation)
	}
	want(e, "lists in order", of, []string{"app/a", "app/b"})
	v, err := e.Lists(e.ctx, "other", "a")
	e.must(err)
	want(e, "generation and lists of the other app", []any{v.Head.Generation, len(v.Nodes)}, []any{7, 1})
}

func namesJobs(e *env) {
	jobs := e.keyed("x", "y", "z")
	e.newJob(func(j *store.Job) { j.App, j.Key = "other", "x" })
	e.newJob(func(j *store.Job) { j.Key = "" })
	e.putList("a", list(1, "x", "y"), store.ApplyNewer)
	before := e.snapshot()
	named := e.mustName(1, "y", "absent", "x", "", "x")
	two := slices.Clone(jobs[:2])
	slices.SortFunc(two, func(a, b store.Job) int { return int(a.ID - b.ID) })
	want(e, "jobs", named, two)
	want(e, "what there is besides", e.snapshot(), before)
	want(e, "no keys", e.mustName(1), nil)
}

func namesSuperseded(e *env) {
	e.there("a")
	job := e.keyed("x")[0]
	for _, generation := range []int64{0, 1} {
		_, err := e.NameJobs(e.ctx, store.ListID{App: "app", Generation: generation}, []string{"x"})
		e.wantErr("an app without a list", err, store.ErrSuperseded)
	}
	e.putList("a", list(5, "y"), store.ApplyNewer)
	for _, generation := range []int64{4, 6} {
		_, err := e.NameJobs(e.ctx, list(generation, "y").ID(), []string{"x"})
		e.wantErr(fmt.Sprint("generation ", generation, " under 5"), err, store.ErrSuperseded)
		_, err = e.AddJobs(e.ctx, list(generation, "y").ID(), []store.Job{{App: "app", Key: "new", Name: "new"}}, nil)
		e.wantErr(fmt.Sprint("AddJobs of generation ", generation, " under 5"), err, store.ErrSuperseded)
	}
	want(e, "surplus: nothing has named the job", e.mustLists("a").Surplus, nil)
	_, err := e.JobByKey(e.ctx, "app", "new")
	e.wantErr("the job that was not added", err, store.ErrNotFound)
	e.mustName(5, "x")
	want(e, "surplus of a job that was named", e.mustLists("a").Surplus, []int64{job.ID})
}

// sameGeneration: once another list of the generation is the head, the former one names
// nothing, adds nothing and changes nothing.
func sameGeneration(e *env) {
	e.there("a")
	job := e.keyed("x")[0]
	former, later := list(5, "x"), list(5, "x", "y")
	e.putList("a", former, store.ApplyNewer)
	e.putList("b", later, store.ApplyNewer)
	before := e.snapshot()
	_, err := e.NameJobs(e.ctx, former.ID(), []string{"x"})
	e.wantErr("NameJobs of the former list", err, store.ErrSuperseded)
	added := []store.Job{{App: "app", Key: "y", Name: "y"}}
	_, err = e.AddJobs(e.ctx, former.ID(), added, nil)
	e.wantErr("AddJobs of the former list", err, store.ErrSuperseded)
	e.wantErr("an edit by the former list", e.guarded(job.ID, store.ListGuard{ListID: former.ID()}), store.ErrSuperseded)
	want(e, "what there is after that", e.snapshot(), before)
	e.putList("a", list(5), store.ApplyNever)
	want(e, "surplus: nothing has named the job", e.mustLists("a").Surplus, nil)
	_, err = e.NameJobs(e.ctx, later.ID(), []string{"x"})
	e.must(err)
	y, err := e.AddJobs(e.ctx, later.ID(), added, nil)
	e.must(err)
	want(e, "jobs that the later list adds", len(y), 1)
	e.must(e.guarded(job.ID, store.ListGuard{ListID: later.ID()}))
}

func unnamesJob(e *env) {
	e.there("a")
	x, y, z := e.three(1)
	other := e.newJob(func(j *store.Job) { j.App, j.Key = "other", "own" })
	e.putList("a", list(1), store.ApplyNewer)
	unnamed, all := []int64{y, z}, []int64{x, y, z}
	slices.Sort(unnamed)
	slices.Sort(all)
	var before string
	for i := range 2 {
		changes := e.mustChanges(x)
		job, err := e.UnnameJob(e.ctx, "app", "x")
		e.must(err)
		want(e, "the job", job, e.mustJob(x))
		want(e, "its changes", e.mustChanges(x), changes)
		want(e, "surplus without it", e.mustLists("a").Surplus, unnamed)
		if i > 0 {
			want(e, "all there is, the second time", e.snapshot(), before)
		}
		before = e.snapshot()
	}
	e.wantErr("to prune it", e.guarded(x, store.ListGuard{ListID: list(1).ID(), SurplusOf: "a"}), store.ErrSuperseded)
	for _, key := range []string{"absent", "", other.Key} {
		_, err := e.UnnameJob(e.ctx, "app", key)
		e.wantErr(fmt.Sprintf("key %q", key), err, store.ErrNotFound)
	}
	e.mustName(1, "x")
	want(e, "surplus when a list has named it again", e.mustLists("a").Surplus, all)
	e.must(e.guarded(x, store.ListGuard{ListID: list(1).ID(), SurplusOf: "a"}))
	job, err := e.UnnameJob(e.ctx, "app", "x")
	e.must(err)
	want(e, "the job that was pruned", []any{job.Stopped, job.StopReason}, []any{true, store.StopPruned})
}

func addsJobs(e *env) {
	e.there("a")
	has := e.keyed("y")[0]
	e.putList("a", list(1), store.ApplyNewer)
	var given []store.Job
	for _, key := range []string{"x", "y", "z"} {
		given = append(given, store.Job{App: "app", Key: key, Name: key, Schedule: schedule.FixedRate(time.Hour), Children: []int64{1}, Next: e.at(-500)})
	}
	first := func(j store.Job, now time.Time) (time.Time, error) {
		e.check(j.ID > 0 && j.Version == 1 && j.Added.Equal(now), "the function got job %+v at %v", j, now)
		j.Children[0] = 99
		return e.at(60), nil
	}
	jobs, err := e.AddJobs(e.ctx, list(1).ID(), given, first)
	e.must(err)
	if len(jobs) != 2 {
		e.Fatalf("added %+v", jobs)
	}
	want(e, "keys, in the order given", []string{jobs[0].Key, jobs[1].Key}, []string{"x", "z"})
	for _, j := range jobs {
		want(e, "job", e.mustJob(j.ID), j)
		want(e, "Next, Children and Shard", []any{j.Next, j.Children, j.Shard}, []any{e.at(60), []int64{1}, int(j.ID % numShards)})
		want(e, "verb", e.mustChanges(j.ID)[0].Verb, "add")
	}
	want(e, "the job that was there", e.mustJob(has.ID), has)
	surplus := []int64{jobs[0].ID, jobs[1].ID}
	slices.Sort(surplus)
	want(e, "surplus: those that were added are named", e.mustLists("a").Surplus, surplus)
	again, err := e.AddJobs(e.ctx, list(1).ID(), given, first)
	e.must(err)
	want(e, "again", again, nil)
	none, err := e.AddJobs(e.ctx, list(1).ID(), nil, first)
	e.must(err)
	want(e, "no jobs", none, nil)
}

func addsEveryField(e *env) {
	e.putList("a", list(1), store.ApplyNewer)
	given := []store.Job{{App: "app", Key: "plain", Name: "plain"}, fullJob()}
	for _, f := range []func(*store.Job){func(j *store.Job) { j.Schedule = schedule.FixedDelay(time.Second) }, func(j *store.Job) { j.Schedule = schedule.Manual() }} {
		j := fullJob()
		j.Key = fmt.Sprint(len(given))
		f(&j)
		given = append(given, j)
	}
	jobs, err := e.AddJobs(e.ctx, list(1).ID(), given, nil)
	e.must(err)
	for i, job := range jobs {
		want(e, "Job", e.mustJob(job.ID), job)
		g := given[i]
		g.ID, g.Version, g.Shard = job.ID, 1, int(job.ID%numShards)
		g.Added, g.Updated, g.GlueUpdated = job.Added, job.Updated, job.GlueUpdated
		e.check(job.GlueUpdated.IsZero() == (g.GlueSource == ""), "GlueUpdated %v of the source %q", job.GlueUpdated, g.GlueSource)
		want(e, "AddJobs", job, g)
	}
}

func addsAllOrNone(e *env) {
	e.putList("a", list(1), store.ApplyNewer)
	before := e.snapshot()
	mine := errors.New("mine")
	given := []store.Job{{App: "app", Key: "x", Name: "x"}, {App: "app", Key: "y", Name: "y"}}
	_, err := e.AddJobs(e.ctx, list(1).ID(), given, func(j store.Job, _ time.Time) (time.Time, error) {
		if j.Key == "y" {
			return time.Time{}, mine
		}
		return e.now, nil
	})
	e.check(err == mine, "an error of the function: %v, want it returned as it is", err)
	want(e, "state after it", e.snapshot(), before)
	jobs, err := e.AddJobs(e.ctx, list(1).ID(), given, nil)
	e.must(err)
	want(e, "jobs added then", len(jobs), 2)
}

// three are jobs x, y and z that a list of the generation has named.
func (e *env) three(generation int64) (x, y, z int64) {
	e.Helper()
	jobs := e.keyed("x", "y", "z")
	e.putList("namer", list(generation, "x", "y", "z"), store.ApplyAlways)
	e.mustName(generation, "x", "y", "z")
	return jobs[0].ID, jobs[1].ID, jobs[2].ID
}

func surplusUnnamed(e *env) {
	e.there("a", "b", "c")
	_, _, z := e.three(1)
	e.putList("a", list(1, "x"), store.ApplyNewer)
	for _, other := range []store.JobList{list(1, "y"), {App: "app", Digest: "old", Keys: []string{"y"}}} {
		e.putList("b", other, store.ApplyNever)
		want(e, "surplus beside a node that names y", e.mustLists("a").Surplus, []int64{z})
	}
	foreign := list(1, "z")
	foreign.App = "other"
	e.putList("c", foreign, store.ApplyNewer)
	want(e, "surplus beside another app's list", e.mustLists("a").Surplus, []int64{z})
	e.must(e.Leave(e.ctx, "b"))
	want(e, "surplus when that node has left", len(e.mustLists("a").Surplus), 2)
	e.putList("a", list(1), store.ApplyNever)
	want(e, "surplus of an empty list", len(e.mustLists("a").Surplus), 3)
}

func surplusGeneration(e *env) {
	e.there("a")
	e.three(5)
	e.putList("a", list(4), store.ApplyNewer)
	want(e, "surplus of a lesser generation", e.mustLists("a").Surplus, nil)
	e.putList("a", list(5), store.ApplyNever)
	want(e, "surplus of the same generation", len(e.mustLists("a").Surplus), 3)
	e.putList("a", list(6), store.ApplyNever)
	want(e, "surplus of a greater generation", len(e.mustLists("a").Surplus), 3)
	e.putList("a", list(4), store.ApplyAlways)
	want(e, "surplus of a lesser generation that applies", len(e.mustLists("a").Surplus), 3)
	e.putList("namer", list(9), store.ApplyNewer)
	e.mustName(9, "x")
	want(e, "surplus of it when a greater one applies: what that has named is kept, and what only the former did", e.mustLists("a").Surplus, nil)
	e.putList("namer", list(4), store.ApplyAlways)
	e.mustName(4, "x", "y", "z")
	e.putList("namer", list(9), store.ApplyNewer)
	want(e, "surplus when a greater one applies that has named nothing", len(e.mustLists("a").Surplus), 3)
}

func surplusNeedsList(e *env) {
	e.there("a", "b")
	e.three(1)
	e.putList("b", list(1), store.ApplyNewer)
	want(e, "surplus for a node without a list", e.mustLists("a").Surplus, nil)
	keeps := list(1)
	keeps.Prune = false
	e.putList("a", keeps, store.ApplyNewer)
	want(e, "surplus for a list that does not prune", e.mustLists("a").Surplus, nil)
	e.must(e.Leave(e.ctx, "b"))
	want(e, "surplus for a node that has left", e.mustLists("b").Surplus, nil)
	want(e, "surplus for nobody", e.mustLists("nobody").Surplus, nil)
}

func surplusWasNamed(e *env) {
	e.there("a")
	x, y, z := e.three(1)
	e.keyed("never named")
	e.stop(x)
	e.must(e.RemoveJob(e.ctx, y))
	e.keyed("y") // another job
	e.putList("a", list(1), store.ApplyNewer)
	want(e, "surplus", e.mustLists("a").Surplus, []int64{z})
}

func prunedNamed(e *env) {
	e.there("a")
	x, y, z := e.three(1)
	for _, id := range []int64{x, y} {
		_, err := e.EditJob(e.ctx, id, replan("prune", time.Time{}, func(j *store.Job) { j.Stopped, j.StopReason = true, store.StopPruned }))
		e.must(err)
	}
	e.stop(z)
	e.putList("a", list(1, "x", "z"), store.ApplyNewer)
	want(e, "pruned jobs that are named", e.mustLists("a").Pruned, []int64{x})
	want(e, "for a node without a list", e.mustLists("b").Pruned, nil)
}

func (e *env) guarded(id int64, g store.ListGuard) error {
	e.Helper()
	edit := replan("prune", time.Time{}, func(j *store.Job) { j.Stopped, j.StopReason = true, store.StopPruned })
	edit.Guard = &g
	_, err := e.EditJob(e.ctx, id, edit)
	return err
}

func guardGeneration(e *env) {
	job := e.keyed("x")[0]
	e.wantErr("no list", e.guarded(job.ID, store.ListGuard{ListID: store.ListID{App: "app"}}), store.ErrSuperseded)
	other := list(4)
	other.App = "other"
	e.putList("a", list(5), store.ApplyNewer)
	e.putList("a", other, store.ApplyNewer)
	for _, l := range []store.ListID{other.ID(), list(4).ID(), list(6).ID(), list(5, "x").ID()} {
		e.wantErr(fmt.Sprintf("%+v", l), e.guarded(job.ID, store.ListGuard{ListID: l}), store.ErrSuperseded)
	}
	want(e, "the job", e.mustJob(job.ID), job)
	e.must(e.guarded(job.ID, store.ListGuard{ListID: list(5).ID()}))
	want(e, "stopped", e.mustJob(job.ID).Stopped, true)
}

func guardSurplus(e *env) {
	e.there("a", "b")
	x, y, z := e.three(5)
	e.putList("a", list(4), store.ApplyNever)
	e.wantErr("a lesser generation", e.guarded(x, store.ListGuard{ListID: list(4).ID(), SurplusOf: "a"}), store.ErrSuperseded)
	guard := store.ListGuard{ListID: list(5, "z").ID(), SurplusOf: "a"}
	e.putList("a", list(5, "z"), store.ApplyNewer)
	e.putList("b", list(1, "y"), store.ApplyNever)
	e.wantErr("named by the other", e.guarded(y, guard), store.ErrSuperseded)
	e.wantErr("named by itself", e.guarded(z, guard), store.ErrSuperseded)
	for what, l := range map[string]store.ListID{"for another app": {App: "other", Generation: 5, Digest: guard.Digest},
		"by a former list of the node": list(4).ID(), "by another list of the generation": list(5).ID()} {
		e.wantErr(what, e.guarded(x, store.ListGuard{ListID: l, SurplusOf: "a"}), store.ErrSuperseded)
	}
	e.wantErr("by a node without a list", e.guarded(x, store.ListGuard{ListID: guard.ListID, SurplusOf: "c"}), store.ErrSuperseded)
	want(e, "surplus", e.mustLists("a").Surplus, []int64{x})
	e.putList("namer", list(5, "w"), store.ApplyNewer)
	e.wantErr("while another list of the generation applies", e.guarded(x, guard), store.ErrSuperseded)
	e.putList("namer", list(4, "w"), store.ApplyAlways)
	e.must(e.guarded(x, guard))
	e.must(e.Leave(e.ctx, "a"))
	e.must(e.Leave(e.ctx, "b"))
	e.wantErr("by a node that has left", e.guarded(y, guard), store.ErrSuperseded)
	want(e, "stopped", []bool{e.mustJob(x).Stopped, e.mustJob(y).Stopped, e.mustJob(z).Stopped}, []bool{true, false, false})
}

// pruneRace: a list that is put while a job is pruned either comes before and keeps it,
// or comes after and finds it pruned.
func pruneRace(e *env) {
	e.there("a", "b")
	e.putList("a", list(1), store.ApplyNewer)
	for i := range 20 {
		key := fmt.Sprint("key-", i)
		job := e.keyed(key)[0]
		e.mustName(1, key)
		var pruned error
		var found []int64
		e.race(func() { pruned = e.guarded(job.ID, store.ListGuard{ListID: list(1).ID(), SurplusOf: "a"}) },
			func() {
				e.putList("b", list(1, key), store.ApplyNever)
				found = e.mustLists("b").Pruned
			})
		e.check(pruned == nil || errors.Is(pruned, store.ErrSuperseded), "prune: %v", pruned)
		if stopped := slices.Contains(found, job.ID); stopped != (pruned == nil) {
			e.Errorf("prune: %v; the node whose list came meanwhile found it pruned: %v", pruned, stopped)
		}
		e.must(e.RemoveJob(e.ctx, job.ID))
	}
}

// unnameRace: a job that nobody has named any more is either pruned before that, which the
// caller sees, or not at all.
func unnameRace(e *env) {
	e.there("a")
	e.putList("a", list(1), store.ApplyNewer)
	for i := range 20 {
		key := fmt.Sprint("key-", i)
		job := e.keyed(key)[0]
		e.mustName(1, key)
		var pruned error
		var seen store.Job
		e.race(func() { pruned = e.guarded(job.ID, store.ListGuard{ListID: list(1).ID(), SurplusOf: "a"}) },
			func() {
				var err error
				seen, err = e.UnnameJob(e.ctx, "app", key)
				e.must(err)
			})
		e.check(pruned == nil || errors.Is(pruned, store.ErrSuperseded), "prune: %v", pruned)
		if seen.Stopped != (pruned == nil) {
			e.Errorf("prune: %v; the caller of UnnameJob saw it stopped: %v", pruned, seen.Stopped)
		}
		e.must(e.RemoveJob(e.ctx, job.ID))
	}
}
