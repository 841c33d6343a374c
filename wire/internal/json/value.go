package json

// Values of one type, as leniently as they are written.

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// kind names the type of a value, for errors.
func (v Value) kind() string {
	switch v[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}

// IsNull reports whether the value is null.
func (v Value) IsNull() bool { return v[0] == 'n' }

// Text reads a string, "" for null. Numbers and booleans are taken as they are
// written. What is not UTF-8 is replaced.
func (v Value) Text() (string, error) {
	switch v[0] {
	case 'n':
		return "", nil
	case '{', '[':
		return "", fmt.Errorf("%s where a string is expected", v.kind())
	case '"':
	default:
		return string(v), nil
	}
	if bytes.IndexByte(v, '\\') < 0 {
		return strings.ToValidUTF8(string(v[1:len(v)-1]), "\uFFFD"), nil
	}
	var s string
	err := stdjson.Unmarshal(v, &s) // replaces what is not UTF-8 as well
	return s, err
}

// Int64 reads an integer, 0 for null.
func (v Value) Int64() (int64, error) {
	var digits string
	switch v[0] {
	case 'n':
		return 0, nil
	case '"':
		s, err := v.Text()
		if err != nil {
			return 0, err
		}
		digits = strings.TrimSpace(s)
	case '{', '[', 't', 'f':
		return 0, fmt.Errorf("%s where a number is expected", v.kind())
	default:
		digits = string(v)
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, strconv.ErrRange):
		return 0, errors.New("a number out of range")
	}
	return integral(digits)
}

// integral reads an integer that is written with a fraction or an exponent, as
// far as a float is exact.
func integral(digits string) (int64, error) {
	const exact = 1 << 53
	f, err := strconv.ParseFloat(digits, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange) || math.IsNaN(f):
		return 0, errors.New("a string where a number is expected")
	case math.Abs(f) > exact:
		return 0, errors.New("a number out of range")
	case f != math.Trunc(f):
		return 0, errors.New("a fraction where an integer is expected")
	}
	return int64(f), nil
}

// Int32 reads an integer of 32 bits.
func (v Value) Int32() (int, error) {
	n, err := v.Int64()
	if err == nil && (n < math.MinInt32 || n > math.MaxInt32) {
		return 0, errors.New("a number out of range")
	}
	return int(n), err
}

// ID32 reads the id of a job, which is 32 bits wide on the wire.
func (v Value) ID32() (int64, error) {
	n, err := v.Int32()
	return int64(n), err
}

// Flag reads a boolean, false for null.
func (v Value) Flag() (bool, error) {
	switch string(v) {
	case "true", `"true"`:
		return true, nil
	case "false", `"false"`, "null":
		return false, nil
	}
	return false, fmt.Errorf("%s where a boolean is expected", v.kind())
}

// Texts reads a list of strings, none for null.
func (v Value) Texts() (list []string, err error) {
	if v.IsNull() {
		return nil, nil
	}
	err = v.Array(func(i int, val Value) error {
		s, err := val.Text()
		if i == maxKeys {
			return fmt.Errorf("more than %d", maxKeys)
		}
		list = append(list, s)
		return err
	})
	return list, err
}
