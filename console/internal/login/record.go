package console

// Entries of the record of changes about what is no change of the store's own: logins.

import (
	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

// recordLogin writes an entry about a login of a user, if the store has a record, and a line in the
// log.
func (q *request) recordLogin(name, verb string) error {
	q.Logger.Info("console: "+verb, "user", name, "client", q.Client.Text, "request", q.ID)
	if q.record == nil {
		return nil
	}
	_, err := q.record.RecordChange(q.ctx, xxljob.Change{Verb: verb, Object: store.ObjectLogin, ObjectID: store.Shown(name, store.MostUserName)})
	return err
}

// noteLogin is recordLogin for what has happened already, whether it can be recorded or not.
func (q *request) noteLogin(name, verb string) {
	if err := q.recordLogin(name, verb); err != nil {
		q.Logger.Warn("console: an entry of the record of changes could not be written", "verb", verb, "user", name, "error", err)
	}
}
