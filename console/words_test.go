package console_test

import (
	"encoding/base64"
	"fmt"
	"strconv"

	"golang.org/x/crypto/argon2"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// hashOf is what is kept of password at a cost: KiB of memory, and passes.
func hashOf(memory, passes uint32) string {
	salt := []byte("somesaltsomesalt")
	sum := argon2.IDKey([]byte(password), salt, passes, memory, 1, 32)
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=1$%s$%s", argon2.Version, memory, passes, base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(sum))
}

func parse(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) }
