package executor

// What a host puts around each call of a handler.

import (
	"context"
	"errors"
	"fmt"
)

// checkMiddleware refuses entries that are nil.
func (c Config) checkMiddleware() error {
	var faults []error
	for i, m := range c.Middleware {
		if m == nil {
			faults = append(faults, fmt.Errorf("xxljob: executor: Config.Middleware[%d] is nil", i))
		}
	}
	return errors.Join(faults...)
}

// wrap puts the middleware around the handler, outermost first. Each is called once, here; one
// that panics or makes no handler is an error.
func (h *handler) wrap(middleware []func(Handler) Handler) error {
	h.call = func(ctx context.Context, t *Task) error {
		if err := h.ready(ctx); err != nil {
			return err
		}
		return h.fn(ctx, t)
	}
	for i := len(middleware) - 1; i >= 0; i-- {
		err := protect(func() error {
			if h.call = middleware[i](h.call); h.call == nil {
				return errors.New("it made no handler")
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("xxljob: executor: handler %q: middleware %d of %d, the outermost first: %w", h.name, i+1, len(middleware), err)
		}
	}
	return nil
}
