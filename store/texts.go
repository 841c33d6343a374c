package store

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/xxljob/xxljob/internal/errs"
)

// Texts that stores keep: UTF-8 without NUL.

// PlainText, for authors of stores, is a text as a store keeps it: UTF-8 without NUL, with U+FFFD
// in place of whatever is none.
func PlainText(text string) string { return errs.PlainText(text) }

// CheckTexts, for authors of stores, refuses a definition or a trigger that has a text which is no
// UTF-8 or has a NUL, with a FieldError for each. value is a struct; of is it in words.
func CheckTexts(of string, value any) error {
	f := Faults{Of: of}
	f.texts("", reflect.ValueOf(value))
	return f.Err()
}

func (f *Faults) texts(field string, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if text := v.String(); !CanBeStored(text) {
			f.Add(field, errs.Shorten(text, 40), coded{"text", errors.New("want UTF-8 without NUL")})
		}
	case reflect.Slice:
		for i := range v.Len() {
			f.texts(fmt.Sprintf("%s[%d]", field, i), v.Index(i))
		}
	case reflect.Pointer:
		if v.Type().Elem().Kind() == reflect.String && !v.IsNil() {
			f.texts(field, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; v.Type().Field(i).IsExported() {
				if field != "" {
					name = field + "." + name
				}
				f.texts(name, v.Field(i))
			}
		}
	}
}
