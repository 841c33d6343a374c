package postgres

import (
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
)

// days knows the partitions of xxl_job_log by their days. A start or an end of runs
// of one day, and a claim, names its partition: the server then need not lock and open all of
// them for each statement, which takes it longer than a few runs do. Runs of
// several days, of days that are not known, or for a role that has rights on the
// parent only, go by the parent.
type days struct {
	mu     sync.Mutex
	there  map[string]bool   // guarded by mu: names of partitions
	texts  map[string]string // guarded by mu: statements of this day and the last, by partition and statement
	denied bool              // guarded by mu: the role has no rights on partitions
}

// maxDayTexts bounds the texts that are kept; it is enough for two days.
const maxDayTexts = 16

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

// of returns the statement for the partition of the ids, and the partition; or the
// statement as it is, and "".
func (d *days) of(s *Store, q query, ids []int64) (own query, partition string) {
	lo, hi := rangeOf(ids)
	from := idTime(lo).Truncate(day)
	if len(ids) == 0 || hi >= idAt(from.Add(day)) {
		return q, ""
	}
	name := partitionName(from)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.denied || !d.there[name] {
		return q, ""
	}
	key := name + q.text
	if text, ok := d.texts[key]; ok {
		return query{text, q.args}, name
	}
	if d.texts == nil || len(d.texts) >= maxDayTexts {
		d.texts = map[string]string{}
	}
	table := s.schema + ".xxl_job_log "
	part := s.schema + "." + pgx.Identifier{name}.Sanitize() + " "
	text := strings.Replace(q.text, "update "+table, "update "+part, 1)
	text = strings.Replace(text, "insert into "+table, "insert into "+part, 1)
	d.texts[key] = text
	return query{text, q.args}, name
}

// byDay runs f with the statement for the partition of the ids, and again with the
// statement as it is where the partition is gone or not the role's to use.
func (s *Store) byDay(q query, ids []int64, f func(query) error) error {
	own, partition := s.days.of(s, q, ids)
	err := f(own)
	switch code := codeOf(err); {
	case partition == "":
	case code == codeNoPartition: // new runs are of the next day by now
		err = f(q)
	case code == codeNoTable || code == codeDenied:
		s.days.forget(partition, code == codeDenied)
		err = f(q)
	}
	return err
}
