package console

// Where a list goes on: what stands in the address of its next page.

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/web"
)

// cursorOf is a place in a list of an order, as text.
func cursorOf(order string, at any) string {
	text, err := json.Marshal(struct {
		Order string `json:"o"`
		At    any    `json:"a"`
	}{order, at})
	if err != nil {
		return "" // a time beyond the year 9999: the list ends there
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// cursor reads a place of the query into at, if there is one. One that was made for another
// order, or by nobody, is a bad request.
func (q *request) cursor(name, order string, at any) error {
	text := q.R.URL.Query().Get(name)
	if text == "" {
		return nil
	}
	var c struct {
		Order string          `json:"o"`
		At    json.RawMessage `json:"a"`
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	switch {
	case err != nil, len(data) > 4096:
		err = errors.New("is none")
	default:
		err = json.Unmarshal(data, &c)
		if err == nil && c.Order != order {
			err = fmt.Errorf("is for the order %q", c.Order)
		}
		if err == nil {
			err = json.Unmarshal(c.At, at)
		}
	}
	if err != nil {
		return web.BadRequest(fmt.Errorf("the place %q of the list: %w", name, err))
	}
	return nil
}

// asked is what an error of a search means: that it asks for what there cannot be is the fault
// of who asks.
func asked(err error) error {
	if len(xxljob.FieldErrors(err)) > 0 {
		return web.BadRequest(err)
	}
	return err
}

// notOffered says that the store does not answer what the page needs.
func notOffered(what string) *web.Problem {
	return &web.Problem{Status: 501, Key: "problem.notoffered", Cause: errors.New(what)}
}
