package journal_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

func ExampleRecord_AppendTo() {
	data := journal.Record{Kind: journal.Put, Key: []byte("hall"), Value: []byte("on"), Prev: 3, Created: 2}.AppendTo(nil, 7)
	r, err := journal.ParseRecord(7, data)
	fmt.Printf("%s=%s, created at %d, before it %d, %v\n", r.Key, r.Value, r.Created, r.Prev, err)
	_, err = journal.ParseRecord(8, data)
	fmt.Println(err)
	// Output:
	// hall=on, created at 2, before it 3, <nil>
	// the record's checksum is wrong
}

func TestRecord_ComesBackAsItWent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		revision := rapid.Uint64Range(2, math.MaxUint64).Draw(t, "revision")
		times := rapid.Custom(func(t *rapid.T) time.Time {
			return time.Unix(rapid.Int64Range(-1e11, 1e11).Draw(t, "seconds"), rapid.Int64Range(0, 999999999).Draw(t, "nanos")).UTC()
		})
		r := journal.Record{
			Kind:    rapid.SampledFrom([]journal.Kind{journal.Put, journal.Delete, journal.Emit}).Draw(t, "kind"),
			Tag:     rapid.Byte().Draw(t, "tag"),
			Sealed:  rapid.Bool().Draw(t, "sealed"),
			Lost:    rapid.Bool().Draw(t, "lost"),
			Prev:    rapid.Uint64Range(0, revision-1).Draw(t, "prev"),
			Created: rapid.Uint64Range(0, revision).Draw(t, "created"),
			Written: times.Draw(t, "written"),
			Key:     rapid.SliceOfN(rapid.Byte(), 1, 50).Draw(t, "key"),
			Value:   rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "value"),
		}
		if r.Kind == journal.Emit {
			r.Prev = 0
		}
		if rapid.Bool().Draw(t, "expires") {
			r.Expires = times.Draw(t, "expiry")
		}
		data := r.AppendTo([]byte("before"), revision)
		require.LessOrEqual(t, len(data)-6, r.Size())
		require.Equal(t, journal.MaxOverhead+len(r.Key)+len(r.Value), r.Size())
		got, err := journal.ParseRecord(revision, data[6:])
		require.NoError(t, err)
		require.Equal(t, r, got)

		at := rapid.IntRange(6, len(data)-1).Draw(t, "damaged byte")
		data[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		_, err = journal.ParseRecord(revision, data[6:])
		require.Error(t, err)
	})
}

func TestRecord_ZeroTimeIsNoExpiryButAValidTime(t *testing.T) {
	data := journal.Record{Kind: journal.Put, Key: []byte("k")}.AppendTo(nil, 1)
	r, err := journal.ParseRecord(1, data)
	require.NoError(t, err)
	require.True(t, r.Written.IsZero())
	require.True(t, r.Expires.IsZero())
}

// raw returns a record of these flags, distances, nanoseconds, length of its key, and key, with a
// wrong checksum.
func raw(flags byte, since, age, nanos, length uint64, key string) []byte {
	data := []byte{0, 0, 0, 0, flags, 0}
	data = binary.AppendUvarint(data, since)
	data = binary.AppendUvarint(data, age)
	data = binary.AppendVarint(data, 0)
	data = binary.AppendUvarint(data, nanos)
	data = binary.AppendUvarint(data, length)
	return append(data, key...)
}

func TestParseRecord_SaysWhatIsWrong(t *testing.T) {
	const short, content = "the record is cut off", "the record's content makes no sense"
	for _, c := range []struct {
		name  string
		data  []byte
		wrong string
	}{
		{"whole", raw(1, 6, 7, 999_999_999, 1, "k"), ""},
		{"the first of its log", raw(1, 0, 7, 0, 1, "k"), ""},
		{"of the first revision", raw(1, 6, 0, 0, 1, "k"), ""},
		{"nothing", nil, short},
		{"without distances", raw(1, 0, 0, 0, 0, "")[:5], short},
		{"without distances, and a tag", raw(1, 0, 0, 0, 0, "")[:6], short},
		{"without its time", raw(1, 6, 7, 0, 1, "k")[:8], short},
		{"without the length of its key", raw(1, 6, 7, 0, 1, "k")[:10], short},
		{"without its key", raw(1, 6, 7, 0, 2, "k"), short},
		{"without its expiry", raw(1|0x10, 6, 7, 0, 1, ""), short},
		{"of no kind", raw(0, 6, 7, 0, 1, "k"), content},
		{"of unknown flags", raw(1|0x80, 6, 7, 0, 1, "k"), content},
		{"of other unknown flags", raw(1|0x04, 6, 7, 0, 1, "k"), content},
		{"after the revision zero", raw(1, 7, 7, 0, 1, "k"), content},
		{"after a revision below zero", raw(1, 8, 7, 0, 1, "k"), content},
		{"created below zero", raw(1, 6, 8, 0, 1, "k"), content},
		{"an event", raw(3, 0, 0, 0, 1, "k"), ""},
		{"an event that replaces an object", raw(3, 6, 0, 0, 1, "k"), content},
		{"of no key", raw(1, 6, 7, 0, 0, "value"), content},
		{"of too many nanoseconds", raw(1, 6, 7, 1_000_000_000, 1, "k"), short},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := journal.ParseUnchecked(7, c.data)
			if c.wrong == "" {
				require.NoError(t, err)
				require.Equal(t, "k", string(r.Key))
			} else {
				require.EqualError(t, err, c.wrong)
			}
			_, err = journal.ParseRecord(7, c.data)
			if len(c.data) < 6 {
				require.EqualError(t, err, short)
			} else {
				require.EqualError(t, err, "the record's checksum is wrong")
			}
		})
	}
}

func FuzzParseRecord(f *testing.F) {
	r := journal.Record{Kind: journal.Put, Key: []byte("key"), Value: []byte("value"), Written: noon, Expires: noon, Prev: 3, Created: 2}
	f.Add(uint64(9), r.AppendTo(nil, 9))
	f.Add(uint64(0), []byte{})
	f.Add(uint64(1), bytes.Repeat([]byte{255}, 40))
	f.Fuzz(func(t *testing.T, revision uint64, data []byte) {
		journal.ParseUnchecked(revision, data)
		r, err := journal.ParseRecord(revision, data)
		if err != nil {
			return
		}
		again, err := journal.ParseRecord(revision, r.AppendTo(nil, revision))
		require.NoError(t, err)
		require.Equal(t, r, again)
	})
}
