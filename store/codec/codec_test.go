package codec_test

import (
	"bytes"
	"compress/gzip"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/codec"
)

func TestJSON_RefusesOtherTags(t *testing.T) {
	var l lamp
	err := codec.JSON{}.Decode(7, []byte(`{}`), &l)
	require.ErrorIs(t, err, codec.ErrTag)
	var tag *codec.TagError
	require.ErrorAs(t, err, &tag)
	require.Equal(t, uint8(7), tag.Tag)
}

func TestJSON_NamesWhatItCannotDo(t *testing.T) {
	_, _, err := codec.JSON{}.Encode(make(chan int))
	require.ErrorContains(t, err, "cannot encode as JSON")
	require.ErrorContains(t, codec.JSON{}.Decode(0, []byte(`{"Name":"hall"} {}`), new(lamp)), "cannot decode JSON")
}

func TestGzip_GivesBackWhatItTook(t *testing.T) {
	zip := codec.Gzip{MinSize: 16, Level: gzip.BestSpeed}
	for size := range 60 {
		in := lamp{Name: strings.Repeat("x", 20*size*size), On: true}
		tag, data, err := zip.Encode(&in)
		require.NoError(t, err)
		var out lamp
		require.NoError(t, zip.Decode(tag, data, &out))
		require.Equal(t, in, out)
	}
}

// Compression turned on reads what was there; turned off, the tag says so.
func TestGzip_CanBeTurnedOnAndIsMissedWhenTurnedOff(t *testing.T) {
	plainTag, plain, err := codec.JSON{}.Encode(&lamp{Name: "hall"})
	require.NoError(t, err)
	var l lamp
	require.NoError(t, codec.Gzip{}.Decode(plainTag, plain, &l))
	require.Equal(t, "hall", l.Name)

	tag, data, err := codec.Gzip{}.Encode(&lamp{Name: strings.Repeat("hall", 1000)})
	require.NoError(t, err)
	require.ErrorIs(t, codec.JSON{}.Decode(tag, data, &l), codec.ErrTag)
}

func TestGzip_LeavesWhatDoesNotShrink(t *testing.T) {
	noise := make([]byte, 1000)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(noise)
	tag, data, err := codec.Gzip{Codec: raw{}}.Encode(&noise)
	require.NoError(t, err)
	require.Equal(t, uint8(5), tag)
	require.Equal(t, noise, data)
}

// Compressing small values costs more than it saves.
func TestGzip_LeavesWhatIsSmall(t *testing.T) {
	for _, zip := range []codec.Gzip{{Codec: raw{}}, {Codec: raw{}, MinSize: codec.DefaultMinSize}} {
		text := bytes.Repeat([]byte{'x'}, codec.DefaultMinSize-1)
		tag, data, err := zip.Encode(&text)
		require.NoError(t, err)
		require.Equal(t, uint8(5), tag)
		require.Equal(t, text, data)
		text = append(text, 'x')
		tag, data, err = zip.Encode(&text)
		require.NoError(t, err)
		require.Equal(t, uint8(128|5), tag)
		require.Less(t, len(data), len(text))
	}
}

// What the codec inside cannot decode is no value, compressed or not.
func TestGzip_FailsAsTheCodecInsideDoes(t *testing.T) {
	for _, text := range []string{"no JSON", strings.Repeat("no JSON", 1000)} {
		value := []byte(text)
		tag, data, err := codec.Gzip{Codec: raw{}}.Encode(&value)
		require.NoError(t, err)
		require.ErrorIs(t, codec.Gzip{}.Decode(tag, data, new(lamp)), codec.ErrTag)
		require.ErrorContains(t, codec.Gzip{}.Decode(tag&^5, data, new(lamp)), "cannot decode JSON")
	}
}

// raw encodes *[]byte as it is, with tag 5.
type raw struct{}

func (raw) Encode(value any) (uint8, []byte, error) { return 5, *value.(*[]byte), nil }

func (raw) Decode(tag uint8, data []byte, into any) error {
	if tag != 5 {
		return &codec.TagError{Codec: "raw", Tag: tag}
	}
	*into.(*[]byte) = bytes.Clone(data)
	return nil
}

// A megabyte of zeros is a kilobyte: reading stops at the limit.
func TestGzip_BoundsWhatComesOut(t *testing.T) {
	zeros := make([]byte, 1<<20)
	tag, bomb, err := codec.Gzip{Codec: raw{}}.Encode(&zeros)
	require.NoError(t, err)
	require.Less(t, len(bomb), 2000)

	small := codec.Gzip{Codec: raw{}, MaxSize: 1000}
	var out []byte
	err = small.Decode(tag, bomb, &out)
	require.ErrorIs(t, err, codec.ErrTooLarge)
	var size *codec.SizeError
	require.ErrorAs(t, err, &size)
	require.Equal(t, int64(1000), size.Limit)
	require.Equal(t, int64(1001), size.Size, "it reads no further")

	_, _, err = small.Encode(&zeros)
	require.ErrorIs(t, err, codec.ErrTooLarge, "what could not be read is not written")
	require.EqualError(t, err, "value of 1048576 bytes or more is larger than the limit of 1000: raise Gzip.MaxSize or store less")
	most := zeros[:1000]
	tag, data, err := small.Encode(&most)
	require.NoError(t, err, "the limit can be written, and read")
	require.NoError(t, small.Decode(tag, data, &out))
	require.Len(t, out, 1000)

	require.NoError(t, codec.Gzip{Codec: raw{}, MaxSize: math.MaxInt64}.Decode(tag, bomb, &out), "the largest number is not a limit")
	require.True(t, bytes.Equal(zeros, out))
}

func TestGzip_RefusesDamage(t *testing.T) {
	text := bytes.Repeat([]byte("again and "), 200)
	zip := codec.Gzip{Codec: raw{}}
	tag, data, err := zip.Encode(&text)
	require.NoError(t, err)
	var out []byte
	require.ErrorContains(t, zip.Decode(tag, data[:len(data)-1], &out), "cannot decompress")
	require.ErrorContains(t, zip.Decode(tag, append(bytes.Clone(data), 0), &out), "after the end of the stream")
	require.ErrorContains(t, zip.Decode(tag, nil, &out), "cannot decompress")
	data[len(data)/2] ^= 1
	require.Error(t, zip.Decode(tag, data, &out))
}

func TestGzip_RefusesWhatItCannotMark(t *testing.T) {
	_, _, err := codec.Gzip{Codec: codec.Gzip{MinSize: 1}}.Encode(&lamp{Name: strings.Repeat("x", 10_000)})
	require.Equal(t, &codec.TagError{Codec: "Gzip", Tag: 128}, err, "twice compressed")
	_, _, err = codec.Gzip{Level: 42}.Encode(&lamp{Name: strings.Repeat("x", 10_000)})
	require.ErrorContains(t, err, "Gzip.Level")
}

func TestGzip_IsSafeForConcurrentUse(t *testing.T) {
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 20 {
				in, out := lamp{Name: strings.Repeat("x", 600+g*100+i)}, lamp{}
				tag, data, err := codec.Gzip{}.Encode(&in)
				if err == nil {
					err = codec.Gzip{}.Decode(tag, data, &out)
				}
				if err != nil || in != out {
					t.Errorf("%v: %v", err, out)
				}
			}
		})
	}
	wg.Wait()
}

func FuzzGzip_Decode(f *testing.F) {
	text := bytes.Repeat([]byte("again and "), 200)
	tag, data, err := codec.Gzip{Codec: raw{}}.Encode(&text)
	require.NoError(f, err)
	f.Add(tag, data)
	f.Add(uint8(0), []byte(`{"Name":"hall"}`))
	f.Add(uint8(5), []byte{})
	zip := codec.Gzip{Codec: raw{}, MaxSize: 5000, MinSize: 1}
	f.Fuzz(func(t *testing.T, tag uint8, data []byte) {
		var out, again []byte
		if zip.Decode(tag, data, &out) != nil {
			return
		}
		if tag >= 128 {
			require.LessOrEqual(t, len(out), 5000)
		}
		if len(out) > 5000 {
			return
		}
		tag, data, err := zip.Encode(&out)
		require.NoError(t, err)
		require.NoError(t, zip.Decode(tag, data, &again))
		require.True(t, bytes.Equal(out, again))
	})
}
