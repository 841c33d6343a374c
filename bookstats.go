package xxljob

// What the engine's books say of themselves.

// lacks are the words for what is waited for in a lot.
func (k lotKind) lacks() string {
	switch k {
	case lotRunning:
		return "place"
	case lotAddress:
		return "address"
	case lotApp:
		return "app"
	case lotLane:
		return "lane"
	case lotSerial:
		return "serial"
	case lotRun:
		return "run"
	case lotOrder:
		return "order"
	case lotSettle:
		return "settle"
	case lotProbe:
		return "probe"
	case lotRoute, lotAsk:
		return "addresses"
	}
	return "turn"
}

// backlog is what is due and does not wait for another run.
func (e *engine) backlog() (b backlog) {
	e.mu.Lock()
	defer e.mu.Unlock()
	addTo(&b, &e.room.due)
	for at, waiting := range e.room.lots.all() {
		switch at.kind {
		case lotSerial, lotRun, lotOrder:
		default:
			addTo(&b, waiting)
		}
	}
	return b
}

func addTo(b *backlog, t *turns) {
	b.waiting += t.len()
	for _, q := range t.apps {
		if len(*q) > 0 && (b.oldest.IsZero() || (*q)[0].run.scheduled().Before(b.oldest)) {
			b.oldest = (*q)[0].run.scheduled()
		}
	}
}

// state fills in what the engine knows.
func (e *engine) state(out *Stats) {
	e.mu.Lock()
	defer e.mu.Unlock()
	out.Held, out.Due, out.Away = e.held.runs.Len(), e.room.due.len(), len(e.under.away)
	out.Waiting, out.Running = map[string]int{}, map[string]int{}
	for at, waiting := range e.room.lots.all() {
		out.Waiting[at.kind.lacks()] += waiting.len()
	}
	lanes := &e.room.lanes
	out.Fast, out.Slow = LaneStats{lanes.limit[laneFast], lanes.used[laneFast]}, LaneStats{lanes.limit[laneSlow], lanes.used[laneSlow]}
	for _, f := range e.under.flights.All() {
		if f.remote {
			out.Calling++
		} else {
			out.Running[f.run.planned.App]++
		}
	}
}
