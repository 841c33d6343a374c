package catalog

import (
	"context"
	"errors"
	"time"

	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/grants"
	"github.com/xxljob/xxljob/store"
)

// Two edits may complete a link at the same moment, from either end: the one leads to a job, and the
// other makes a script of it. Each was looked at before the other was stored. So each is looked at again
// when it is stored: whichever is stored last sees both, and is taken back.

// lookAgain looks again at a definition that was stored for a caller in the place of old, and calls
// takeBack where it may not be, or where that cannot be found out. Of one that leads nowhere nothing is
// read.
func (d *Catalog) lookAgain(ctx context.Context, g grants.Grants, old, stored *store.Job, takeBack func(context.Context) error) error {
	err := d.mayDefine(ctx, g, old, stored)
	if err == nil {
		return nil
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeBackPatience) // also for who has gone
	defer cancel()
	if failed := takeBack(late); failed != nil && !errors.Is(failed, errs.ErrNotFound) {
		d.Logger.Error("xxljob: a job leads where the caller may not have it lead, by another edit at the same moment, and that could not be taken back", "job", stored.ID, "app", stored.App, "error", failed)
		err = errors.Join(err, failed)
	}
	return err
}

// takeBackPatience is how long the store has to take a definition back.
const takeBackPatience = 10 * time.Second

// unlink takes back what an edit has made of where the job leads and what it is, whatever others have
// made of the rest by now.
func (d *Catalog) unlink(ctx context.Context, old store.Job) error {
	_, err := d.edit(ctx, old.ID, store.Edit{Verb: "update", Change: func(j *store.Job) (bool, error) {
		j.Key, j.Param, j.Secret, j.Handler = old.Key, old.Param, old.Secret, old.Handler
		j.GlueType, j.GlueSource, j.GlueRemark = old.GlueType, old.GlueSource, old.GlueRemark
		j.Children, j.ChildKeys, j.ChildParam = old.Children, old.ChildKeys, old.ChildParam
		return false, nil
	}})
	return err
}
