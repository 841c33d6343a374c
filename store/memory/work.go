package memory

// work is what a job has of its runs. A job of which no run is kept has Store.noWork.
type work struct {
	open     int             // unended runs that are Born
	planned  bag[*run]       // planned runs of every type, but for those that are kept apart
	retries  order[run]      // planned runs of type RETRY, by (Instant, ID)
	retrying int             // their number
	ahead    bag[*run]       // runs that are kept apart
	runs     list            // all runs that are kept
	ended    list            // those of them that have ended
	busy     []place         // attached addresses with started runs
	plain    *terms          // of the last run that was planned
	started  *terms          // of the last run that was started
	logged   map[int64]int64 // bytes of pages of logs that are kept, by the day of their runs
}

func newWork() *work { return &work{runs: list{by: ofJob}, ended: list{by: endedOfJob}} }

// maxIdle bounds how many are kept to be used again.
const maxIdle = 1024

// working gives a job that is about to get a run what it needs for that.
func (s *Store) working(j *job) {
	if j.work != s.noWork {
		return
	}
	if last := len(s.idle) - 1; last >= 0 {
		j.work = s.idle[last]
		s.idle[last] = nil
		s.idle = s.idle[:last]
	} else {
		j.work = newWork()
	}
	j.plain = s.plainOf(terms{app: j.app, retries: retriesOfJob})
}

// rest takes it from a job of which the last run was dropped.
func (s *Store) rest(j *job) {
	if j.work == s.noWork || j.runs.n > 0 {
		return
	}
	j.plain, j.started = nil, nil
	if len(s.idle) < maxIdle {
		s.idle = append(s.idle, j.work)
	}
	j.work = s.noWork
}
