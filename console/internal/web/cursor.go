package web

// Where a list goes on: what stands in the address of its next page.

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
)

// CursorOf is a place in a list of an order, as text.
func CursorOf(order string, at any) string {
	text, err := json.Marshal(struct {
		Order string `json:"o"`
		At    any    `json:"a"`
	}{order, at})
	if err != nil {
		return "" // a time beyond the year 9999: the list ends there
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// Cursor reads a place of the query into at, if there is one. One that was made for another
// order, or by nobody, is a bad request.
func (x *Exchange) Cursor(name, order string, at any) error {
	text := x.R.URL.Query().Get(name)
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
		return BadRequest(fmt.Errorf("the place %q of the list: %w", name, err))
	}
	return nil
}
