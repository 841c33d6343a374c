package audit

import "slices"

// checkInstant looks for what became of an instant that had to fire: of every part
// of it, for a broadcast.
func (a *Auditor) checkInstant(r *Report, j Job, at int64) {
	if a.usedUp(j, at) {
		return
	}
	k := instant{j.ID, at}
	begun := map[int]bool{}
	total := 1
	for _, run := range a.at[k] {
		e := a.starts[run][0]
		begun[e.Index] = true
		total = max(total, e.Total)
	}
	rows := map[int][]Row{}
	for _, row := range a.rowsAt[k] {
		if row.scheduleBorn() || row.Type == "" {
			rows[row.Index] = append(rows[row.Index], row)
			total = max(total, row.Total)
		}
	}
	if len(begun) == 0 && len(rows) == 0 && a.recorded(r, j, at, 0) {
		return
	}
	for part := range total {
		if !begun[part] {
			a.checkMissing(r, j, at, part, total, rows[part])
		}
	}
}

// recorded accounts for an instant that a record from after a time stands for: a skip, or
// a run that makes up for many.
func (a *Auditor) recorded(r *Report, j Job, at, since int64) bool {
	for _, row := range a.records[j.ID] {
		if !row.covers(at) || row.Ended < since {
			continue
		}
		if row.Reason == editReason && a.overdueAtEdit(j, at) {
			a.dropped(r, j, at, []Row{row})
			return true
		}
		if row.State == Skipped {
			r.Skipped++
		}
		if !a.explain.maySkip(row.First, row.Last) && !a.explain.missed(j, row.First, row.Last) {
			r.Forbidden++
			r.problem("forbidden skip", "job %d (%s) at %s: %s record %d of %d instants, %s to %s, without a fault as long as the misfire threshold",
				j.ID, j.Name, clock(at), row.Reason, row.Run, row.Count, clock(row.First), clock(row.Last))
		}
		return true
	}
	return false
}

// checkMissing says why a part of an instant has no handler start.
func (a *Auditor) checkMissing(r *Report, j Job, at int64, part, total int, rows []Row) {
	for _, row := range rows {
		switch {
		case row.State == Lost || row.State == Killed && j.Block != BlockCover:
			// Interrupted: counted where rows are.
			return
		case row.State <= Dispatched:
			return // unfinished: counted where rows are
		case row.State == Skipped:
			a.recordedRow(r, j, at, row)
			return
		case row.State == NoAddress && j.Nobody != "":
			return // judged where rows are
		case row.State == NoAddress && j.Route == RouteBusyover:
			a.checkBusy(r, j, at, row)
			return
		case row.State == Discarded && (j.Block == BlockDiscard || j.Block == BlockCover), row.State == Killed && j.Block == BlockCover:
			a.checkYielded(r, j, at, row)
			return
		}
	}
	if allCancelled(rows) && a.overdueAtEdit(j, at) {
		a.dropped(r, j, at, rows)
		return
	}
	// What an edit has cancelled may be an instant of the new schedule as well.
	if len(rows) > 0 && allCancelled(rows) && a.recorded(r, j, at, rows[len(rows)-1].Ended) {
		return
	}
	r.Lost++
	r.problem("lost", "job %d (%s) at %s, part %d of %d: no start, and %s", j.ID, j.Name, clock(at), part, total, describe(rows))
}

// recordedRow accounts for a skip of a single instant without a span.
func (a *Auditor) recordedRow(r *Report, j Job, at int64, row Row) {
	r.Skipped++
	if !a.explain.maySkip(at, at) {
		r.Forbidden++
		r.problem("forbidden skip", "job %d (%s) at %s: row %d, %s", j.ID, j.Name, clock(at), row.Run, row.Reason)
	}
}

// yieldSlack is by how much the handler of the run that another yielded to may be
// called after the verdict on that other was stored, and how long after it was reached
// a verdict may be stored, in milliseconds.
const yieldSlack = 500

// probeTTL is how old the answer may be by which an executor counts as busy, in
// milliseconds.
const probeTTL = 1000

// checkBusy accepts that the one route which goes to idle executors only gave an instant
// up if another run of the job was started and had not ended when they were asked. The
// refusal is stored a moment after it was decided, as any verdict is.
func (a *Auditor) checkBusy(r *Report, j Job, at int64, row Row) {
	r.Yielded++
	for _, other := range a.in.Rows {
		if other.Job == j.ID && other.Run != row.Run && other.Started != 0 && other.Started <= row.Ended &&
			(other.Ended == 0 || other.Ended+probeTTL+yieldSlack >= row.Ended) {
			return
		}
	}
	r.Wrong++
	r.problem("yielded to nobody", "job %d (%s) at %s: run %d is %s, and no other run was under way", j.ID, j.Name, clock(at), row.Run, stateName(row.State))
}

// checkYielded accepts that a block strategy gave an instant up if another run of
// the job was under way, or came next, at that time: an earlier one where later ones are
// discarded, and a later one where earlier ones are covered. Earlier is what was due before,
// or has the lesser id.
func (a *Auditor) checkYielded(r *Report, j Job, at int64, row Row) {
	r.Yielded++
	end := max(row.Ended, row.Started, at) + yieldSlack
	if j.Block == BlockCover {
		end += a.in.Rules.Slack
	}
	for run, starts := range a.starts {
		s := starts[0]
		if run == row.Run || s.Job != j.ID || s.At/1000 > end || j.Broadcast && s.Due == at {
			continue // the parts of one broadcast do not yield to each other
		}
		if other, there := a.rows[run]; there && isEarlier(other, row) != (j.Block == BlockDiscard) {
			continue
		}
		ends := a.ends[run]
		if len(ends) == 0 || ends[len(ends)-1].At/1000 >= at {
			return
		}
	}
	r.Wrong++
	r.problem("yielded to nobody", "job %d (%s) at %s: run %d is %s, and no other run was under way", j.ID, j.Name, clock(at), row.Run, stateName(row.State))
}

// isEarlier reports whether a run became due before another.
func isEarlier(a, b Row) bool { return a.Due < b.Due || a.Due == b.Due && a.Run < b.Run }

// editReason is the reason of a record of instants that an operation left behind:
// nothing was planned for them yet.
const editReason = "edit"

// overdueAtEdit reports whether an operation that replaced the schedule came while
// the instant was due and had not been started: the new schedule begins later than
// now, and after a stop nothing may start.
func (a *Auditor) overdueAtEdit(j Job, at int64) bool {
	grace := max(a.in.Rules.Misfire, a.explain.outageLeft(at*1000)/1000+a.in.Rules.Slack)
	return a.lives[j.ID].replanned(at, grace)
}

// dropped accounts for an instant that was overdue at an edit: something has to
// explain why it was, unless it was so for a moment only.
func (a *Auditor) dropped(r *Report, j Job, at int64, rows []Row) {
	r.Dropped++
	late := a.in.Rules.overdue()
	// A fault explains it that had begun when the instant was due, or before it counted
	// as overdue.
	if a.explain.duringOutage(at*1000) || a.explain.duringOutage((at+late)*1000) || a.lives[j.ID].replanned(at, late) {
		return
	}
	r.Overdue++
	r.problem("dropped", "job %d (%s) at %s was overdue when an operation came, and has %s", j.ID, j.Name, clock(at), describe(rows))
}

func allCancelled(rows []Row) bool {
	return !slices.ContainsFunc(rows, func(row Row) bool { return row.State != Cancelled })
}
