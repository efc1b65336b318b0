package objectcache_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestProperty_ReflectorsRunningAreKeysThatNeedOne tries any sequence of
// everything that can happen. After each step there is a Reflector for exactly
// those keys that are referenced and neither immutable nor idle.
func TestProperty_ReflectorsRunningAreKeysThatNeedOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, rapid.Uint64().Draw(t, "seed"))
		defer w.close()
		any := rapid.SampledFrom([]string{"a", "b", "a/below", "c", "d"})
		held := func(t *rapid.T) (key string, n int) {
			var keys []string
			for _, key := range []string{"a", "b", "a/below", "c", "d"} {
				if w.keys[key] != nil {
					keys = append(keys, key)
				}
			}
			if len(keys) == 0 {
				t.Skip("nothing is referenced")
			}
			key = rapid.SampledFrom(keys).Draw(t, "key")
			return key, rapid.IntRange(0, len(w.keys[key].refs)-1).Draw(t, "reference")
		}
		w.t = t
		t.Repeat(map[string]func(*rapid.T){
			"acquire": func(t *rapid.T) { w.take(any.Draw(t, "key")) },
			"release": func(t *rapid.T) { w.drop(held(t)) },
			"churn":   func(t *rapid.T) { key, _ := held(t); w.churn(key) },
			"get":     func(t *rapid.T) { w.get(held(t)) },
			"write": func(t *rapid.T) {
				w.write(secret{any.Draw(t, "key"), rapid.StringMatching("[a-z]{0,3}").Draw(t, "data"), rapid.Bool().Draw(t, "immutable")})
			},
			"remove":  func(t *rapid.T) { w.remove(any.Draw(t, "key")) },
			"pass":    func(t *rapid.T) { w.pass(time.Duration(rapid.IntRange(1, 90).Draw(t, "seconds")) * time.Second) },
			"fail":    func(*rapid.T) { w.fail() },
			"recover": func(*rapid.T) { w.recover() },
			"": func(*rapid.T) {
				w.check()
				w.checkKeys()
			},
		})
	})
}

// TestProperty_TenThousandReferencesOverAThousandKeys does the same at the size
// of a busy node.
func TestProperty_TenThousandReferencesOverAThousandKeys(t *testing.T) {
	const keys, references = 1000, 10_000
	w := newWorld(t, 1)
	defer w.close()
	random := rand.New(rand.NewPCG(1, 0))
	key := func() string { return fmt.Sprintf("ns-%d/secret", random.IntN(keys)) }
	for n := range keys / 2 { // of the others there is no object, yet
		w.write(secret{Name: fmt.Sprintf("ns-%d/secret", n), Immutable: n%10 == 0})
	}
	for taken, step := 0, 0; taken < references; step++ {
		switch k, chance := key(), random.IntN(1000); {
		case chance < 400:
			w.take(k)
			taken++
		case w.keys[k] == nil:
			continue
		case chance < 650:
			w.drop(k, random.IntN(len(w.keys[k].refs)))
		case chance < 950:
			w.get(k, random.IntN(len(w.keys[k].refs)))
		case chance < 954: // which every watch looks at
			w.write(secret{k, fmt.Sprint(step), random.IntN(10) == 0})
		case chance < 957:
			w.remove(k)
		default:
			w.pass(time.Duration(random.IntN(2000)) * time.Millisecond)
		}
		w.check()
		if step%500 == 0 {
			w.checkKeys()
		}
	}
	w.checkKeys()
	require.Greater(t, w.read, references/4, "too few reads were answered to say anything")
	require.Greater(t, w.refs, 1000)
	require.NotZero(t, w.cache.Stats().Frozen)
	require.NotZero(t, w.cache.Stats().Idle)
}
