package console_test

import (
	"strconv"

	"encoding/base64"
	"golang.org/x/crypto/argon2"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// cheapSum is what a cheap hash makes of password.
var cheapSum = base64.RawStdEncoding.EncodeToString(argon2.IDKey([]byte(password), []byte("somesaltsomesalt"), 1, 64, 1, 32))

func parse(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) }
