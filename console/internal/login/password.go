package login

// Passwords: which are taken, and how they are kept.

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"github.com/xxljob/xxljob/internal/slots"
)

// The cost of a hash (argon2id), which is stored with each: one that has less memory or fewer passes
// is made anew at the next login of its user. Of the costs that OWASP calls equal this one takes
// little memory, and more passes for it: each try of a stranger allocates that much, and what was
// given back is there until it is collected.
const (
	hashMemory = 7 << 10 // KiB
	hashPasses = 5
	hashLanes  = 1
	hashSalt   = 16 // bytes
	hashSize   = 32
)

// The length of a password, in characters.
const (
	shortestPassword = 10
	longestPassword  = 128
)

// WeakPassword is what is wrong with a password that somebody chooses; its text is a key of words.
type WeakPassword string

func (e WeakPassword) Error() string { return "console: password: " + string(e) }

// CheckPassword returns what is wrong with a password that somebody chooses for a name. There
// are no rules of what it is made of.
func CheckPassword(name, password string) error {
	n := utf8.RuneCountInString(password)
	switch {
	case n < shortestPassword:
		return WeakPassword("password.short")
	case n > longestPassword, !utf8.ValidString(password):
		return WeakPassword("password.long")
	case name != "" && strings.Contains(strings.ToLower(password), strings.ToLower(name)) && n-utf8.RuneCountInString(name) < 6:
		return WeakPassword("password.name")
	case isPattern([]rune(password)):
		return WeakPassword("password.pattern")
	}
	return nil
}

// isPattern reports whether a text repeats a short part, or counts up or down, all the way.
func isPattern(s []rune) bool {
	for period := 1; period <= 4; period++ {
		same := true
		for i := period; i < len(s) && same; i++ {
			same = s[i] == s[i-period]
		}
		if same {
			return true
		}
	}
	for _, step := range []rune{1, -1} {
		counts := true
		for i := 1; i < len(s) && counts; i++ {
			d := s[i] - s[i-1]
			counts = d == step || d == -9*step // 9 is followed by 0, and the other way round
		}
		if counts {
			return true
		}
	}
	return false
}

// Hasher makes hashes, two at a time: each takes a core for a twentieth of a second, and 7
// MiB. One of the places is for those who have logged in before. Key is argon2.IDKey, but in tests
// that count what is made.
type Hasher struct {
	Places *slots.Slots
	Key    func(password, salt []byte, passes, memory uint32, lanes uint8, size uint32) []byte
}

// hashesAtOnce is how many a hasher makes at once, and hashPatience how long somebody waits for that:
// as many as come to work at the same time and log in.
const (
	hashesAtOnce = 2
	hashPatience = 8 * time.Second
)

// NewHasher makes one.
func NewHasher() *Hasher { return &Hasher{slots.New(hashesAtOnce), argon2.IDKey} }

// ErrBusy is returned where too many hashes are being made.
var ErrBusy = errors.New("console: too many passwords are being checked at once")

// place waits for its turn, and returns how to give it back.
func (h *Hasher) place(ctx context.Context, who slots.Holder) (free func(), err error) {
	if !h.Places.TakeWithin(ctx, hashPatience, who) {
		return nil, ErrBusy
	}
	return func() { h.Places.Give(who) }, nil
}

// Hash returns what is kept of a password.
func (h *Hasher) Hash(ctx context.Context, who slots.Holder, password string) (string, error) {
	free, err := h.place(ctx, who)
	if err != nil {
		return "", err
	}
	defer free()
	salt := make([]byte, hashSalt)
	_, _ = rand.Read(salt) // never fails
	sum := h.Key([]byte(password), salt, hashPasses, hashMemory, hashLanes, hashSize)
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, hashMemory, hashPasses, hashLanes,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(sum)), nil
}

// Matches reports whether a password is the one that a hash was made of, and whether the hash
// should be made anew. Where kept is empty, as for a name that nobody has, it takes as long and
// the answer is no.
func (h *Hasher) Matches(ctx context.Context, who slots.Holder, kept, password string) (is, stale bool, err error) {
	free, err := h.place(ctx, who)
	if err != nil {
		return false, false, err
	}
	defer free()
	var version, memory, passes int
	var lanes uint8
	var salt, sum []byte
	parts := strings.Split(kept, "$")
	known := len(parts) == 6 && parts[1] == "argon2id"
	if known {
		_, err1 := fmt.Sscanf(parts[2], "v=%d", &version)
		_, err2 := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &memory, &passes, &lanes)
		var err3, err4 error
		salt, err3 = base64.RawStdEncoding.DecodeString(parts[4])
		sum, err4 = base64.RawStdEncoding.DecodeString(parts[5])
		known = errors.Join(err1, err2, err3, err4) == nil && version == argon2.Version && len(sum) > 0 &&
			memory >= 8 && memory <= 1<<20 && passes >= 1 && passes <= 100 && lanes >= 1
	}
	if !known {
		memory, passes, lanes, salt, sum = hashMemory, hashPasses, hashLanes, make([]byte, hashSalt), make([]byte, hashSize)
	}
	if utf8.RuneCountInString(password) > longestPassword {
		password, known = "", false
	}
	got := h.Key([]byte(password), salt, uint32(passes), uint32(memory), lanes, uint32(len(sum)))
	is = subtle.ConstantTimeCompare(got, sum) == 1 && known
	return is, memory < hashMemory || passes < hashPasses, nil
}
