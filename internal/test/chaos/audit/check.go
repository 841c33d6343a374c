package audit

import (
	"cmp"
	"slices"
)

// Input is everything there is to judge by.
type Input struct {
	Jobs   []Job
	Events []Event
	Said   []Said
	Ops    []Op
	Faults []Fault
	Rows   []Row
	Owed   []Owed
	Open   []Open
	Alarms []Alarm
	Told   []Told
	// Noted are the troubles that nodes have passed on, and Stopped is the moment at which the nodes began to stop.
	Noted   []Trouble
	Stopped int64
	// Choices are what the routers of services chose.
	Choices []Choice
	// Miscounted says where the reports are not equal to a count of the rows.
	Miscounted []string
	// Lines are those of the logs in the store.
	Lines []Line
	Rules Rules
}

// Auditor holds an input, sorted for questions. It judges any stretch of time of
// it.
type Auditor struct {
	in      Input
	explain explainer
	lives   map[int64]life
	jobs    map[int64]Job

	starts  map[int64][]Event // by run, in order of time
	ends    map[int64][]Event // by run
	at      map[instant][]int64
	byParam map[string][]int64
	rows    map[int64]Row // by run
	rowsAt  map[instant][]Row
	records map[int64][]Row // by job: rows that stand for several instants
	killed  map[int64]Op    // by run: who asked for its end
	chains  map[chain][]Row // of jobs whose handlers fail, in order
	led     led
	alarms  alarms
	made    map[int64]Row // by job: the run with which a MaxRuns was reached
	words   words
}

// instant is one due time of one job.
type instant struct{ job, due int64 }

// New sorts the input.
func New(in Input) *Auditor {
	in.Ops = undone(in.Ops, in.Faults)
	a := &Auditor{
		in: in, explain: newExplainer(in.Faults, nodesOf(in.Events), in.Rules), lives: lives(in.Ops), jobs: map[int64]Job{},
		starts: map[int64][]Event{}, ends: map[int64][]Event{}, at: map[instant][]int64{}, byParam: map[string][]int64{},
		rows: map[int64]Row{}, rowsAt: map[instant][]Row{}, records: map[int64][]Row{}, killed: map[int64]Op{},
	}
	for _, op := range in.Ops {
		if op.Kind == OpKill {
			a.killed[op.Run] = op
		}
	}
	for _, j := range in.Jobs {
		a.jobs[j.ID] = j
	}
	a.addEvents()
	a.addRows()
	a.addChains()
	a.addLed()
	a.addAlarms()
	a.made = a.lastRuns()
	a.words = newWords(in.Said, in.Faults)
	return a
}

// nodesOf are the names of the nodes that have started something.
func nodesOf(events []Event) (nodes []string) {
	seen := map[string]bool{}
	for _, e := range events {
		if !seen[e.Node] {
			seen[e.Node] = true
			nodes = append(nodes, e.Node)
		}
	}
	return nodes
}

func (a *Auditor) addEvents() {
	events := slices.Clone(a.in.Events)
	slices.SortStableFunc(events, func(x, y Event) int { return cmp.Compare(x.At, y.At) })
	for _, e := range events {
		if e.Kind == EventEnd {
			a.ends[e.Run] = append(a.ends[e.Run], e)
			continue
		}
		if len(a.starts[e.Run]) == 0 {
			k := instant{e.Job, e.Due}
			a.at[k] = append(a.at[k], e.Run)
			if e.Param != "" {
				a.byParam[e.Param] = append(a.byParam[e.Param], e.Run)
			}
		}
		a.starts[e.Run] = append(a.starts[e.Run], e)
	}
}

func (a *Auditor) addRows() {
	for _, r := range a.in.Rows {
		a.rows[r.Run] = r
		if r.Count > 0 {
			a.records[r.Job] = append(a.records[r.Job], r)
			continue
		}
		k := instant{r.Job, r.Due}
		a.rowsAt[k] = append(a.rowsAt[k], r)
	}
}

// Check judges the instants and triggers due in [from, to), in milliseconds.
func (a *Auditor) Check(from, to int64) *Report {
	r := &Report{forgiving: a.in.Rules.MayForget, timed: a.in.Rules.Timed}
	a.checkTroubles(r, from, to)
	if a.in.Rules.Stepped {
		a.checkStepped(r, from*1000, to*1000)
		return r
	}
	for _, id := range sortedKeys(a.lives) {
		for _, at := range a.lives[id].instants(from, to-1) {
			a.checkInstant(r, a.jobs[id], at)
		}
	}
	for _, run := range sortedKeys(a.starts) {
		if due := a.starts[run][0].Due; from <= due && due < to {
			a.checkStarted(r, run)
		}
	}
	for _, row := range a.in.Rows {
		if at := row.instant(); from <= at && at < to {
			a.checkRow(r, row)
		}
	}
	a.checkDoubleInstants(r, from, to)
	a.checkTriggers(r, from, to)
	a.checkChains(r, from, to)
	a.checkLed(r, from, to)
	a.checkAlarms(r, from, to)
	a.checkNoted(r, from, to)
	a.checkDelays(r, from, to)
	a.checkRecords(r, from, to)
	a.checkSideBySide(r, from, to)
	a.measure(r, from, to)
	a.checkByRoute(r, from, to)
	a.checkUntold(r, from, to)
	return r
}
