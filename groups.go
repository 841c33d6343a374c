package xxljob

// The verbs that change groups.

import (
	"context"
	"fmt"

	"github.com/xxljob/xxljob/store"
)

func (d *definer) SaveGroup(ctx context.Context, g Group) error {
	if ctx == nil {
		return errNoContext
	}
	setDefault(&g.Title, g.App)
	if err := g.Validate(); err != nil {
		return err
	}
	g = g.clone()
	if err := d.setShards(ctx); err != nil {
		return err
	}
	if err := d.checkGroup(ctx, &g); err != nil {
		return err
	}
	defer d.book.memory.forget()
	if err := d.store.SaveGroup(ctx, g); err != nil {
		return err
	}
	logChange(ctx, d.log, "save", store.ObjectApp, g.App, "")
	return nil
}

func (d *definer) RemoveGroup(ctx context.Context, app string) error {
	if ctx == nil {
		return errNoContext
	}
	defer d.book.memory.forget()
	if err := d.setShards(ctx); err != nil {
		return err
	}
	if err := d.store.RemoveGroup(ctx, app); err != nil {
		return absent("remove", fmt.Sprintf("group %q", app), err)
	}
	logChange(ctx, d.log, "remove", store.ObjectApp, app, "")
	return nil
}
