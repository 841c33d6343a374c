package postgres

import (
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
)

// Which partition a statement names.

// days knows the partitions of xxl_job_log by their days. A start or an end of runs
// of one day, and a claim, names its partition: the server then need not lock and open all of
// them for each statement, which takes it longer than a few runs do. Runs of
// several days, of days that are not known, or for a role that has rights on the
// parent only, go by the parent.
type days struct {
	mu     sync.Mutex
	there  map[string]bool    // guarded by mu: names of partitions
	texts  map[dayText]string // guarded by mu: statements of this day and the last
	denied bool               // guarded by mu: the role has no rights on partitions
}

// dayText is a statement for a partition.
type dayText struct {
	text, partition string
	reads           bool // what it reads is there as well
}

// maxDayTexts bounds the texts that are kept; it is enough for two days.
const maxDayTexts = 32

// know adds partitions that are there.
func (d *days) know(names ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.there == nil {
		d.there = map[string]bool{}
	}
	for _, name := range names {
		d.there[name] = true
	}
}

// forget drops one, or gives up the use of all where the role may not use it.
func (d *days) forget(name string, denied bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.there, name)
	d.denied = d.denied || denied
}

// of is the partition that holds all of the ids; "" where statements go by the parent.
func (d *days) of(ids []int64) (partition string) {
	lo, hi := rangeOf(ids)
	from := idTime(lo).Truncate(day)
	if len(ids) == 0 || hi >= idAt(from.Add(day)) {
		return ""
	}
	name := partitionName(from)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.denied || !d.there[name] {
		return ""
	}
	return name
}

// in returns the statement for the partition, which it changes, and with reads, reads as well; or
// as it is for "".
func (d *days) in(s *Store, q query, partition string, reads bool) query {
	if partition == "" {
		return q
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	key := dayText{q.text, partition, reads}
	if text, ok := d.texts[key]; ok {
		return query{text: text, args: q.args, said: q.said}
	}
	if d.texts == nil || len(d.texts) >= maxDayTexts {
		d.texts = map[dayText]string{}
	}
	table := s.schema + ".xxl_job_log "
	part := s.schema + "." + pgx.Identifier{partition}.Sanitize() + " "
	text := strings.Replace(q.text, "update "+table, "update "+part, 1)
	text = strings.Replace(text, "insert into "+table, "insert into "+part, 1)
	if reads {
		text = strings.ReplaceAll(text, "from "+table, "from "+part)
	}
	d.texts[key] = text
	return query{text: text, args: q.args, said: q.said}
}

// byDay runs f with the statement for the partition of the ids, and again with the
// statement as it is where the partition is gone or not the role's to use.
func (s *Store) byDay(q query, ids []int64, f func(query) error) error {
	return s.inDay(ids, func(in inDay) error { return f(in.of(q)) })
}

// inDay makes statements those for the partition of some ids, where there is one.
type inDay struct {
	store     *Store
	partition string
}

// of is a statement that changes the runs.
func (d inDay) of(q query) query { return d.store.days.in(d.store, q, d.partition, false) }

// with is a statement that besides reads runs with ids from lo to hi.
func (d inDay) with(q query, lo, hi int64) query {
	reads := lo > hi || d.store.days.of([]int64{lo, hi}) == d.partition
	return d.store.days.in(d.store, q, d.partition, reads)
}

// inDay is byDay for one of several statements, which f chooses.
func (s *Store) inDay(ids []int64, f func(inDay) error) error {
	d := inDay{s, s.days.of(ids)}
	err := f(d)
	switch code := codeOf(err); {
	case d.partition == "":
	case code == codeNoPartition: // new runs are of the next day by now
		err = f(inDay{store: s})
	case code == codeNoTable || code == codeDenied:
		s.days.forget(d.partition, code == codeDenied)
		err = f(inDay{store: s})
	}
	return err
}
