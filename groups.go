package xxljob

// The verbs that change groups.

import (
	"context"
	"fmt"
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
	return d.store.SaveGroup(ctx, g)
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
	return nil
}
