package protobuf_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/watchmill/watchmill/registry/protobuf"
)

// Thing is a kind for which there are protobuf messages.
type Thing = metav1.PartialObjectMetadata

// message returns an object as clients send it.
func message(t testing.TB, apiVersion, kind string, object interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	raw, err := object.Marshal()
	require.NoError(t, err)
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}
	text, err := envelope.Marshal()
	require.NoError(t, err)
	return append([]byte("k8s\x00"), text...)
}

func TestDecoders_MakeJSON(t *testing.T) {
	decode := protobuf.Decoders[Thing]("Thing")[protobuf.MediaType]
	text, err := decode(message(t, "example.com/v1", "Thing", &Thing{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"x": "y"}}}))
	require.NoError(t, err)
	require.JSONEq(t, `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a","labels":{"x":"y"}}}`, string(text))

	uid := types.UID("u")
	text, err = decode(message(t, "v1", "DeleteOptions", &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}))
	require.NoError(t, err)
	require.JSONEq(t, `{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"u"}}`, string(text))
}

// scale is a Scale with fields of a later version in it.
type scale struct {
	name     string
	wanted   int32
	observed int32
	selector string
}

func (s scale) Marshal() ([]byte, error) {
	meta, err := (&metav1.ObjectMeta{Name: s.name}).Marshal()
	if err != nil {
		return nil, err
	}
	number := func(to []byte, of protowire.Number, n int32) []byte {
		return protowire.AppendVarint(protowire.AppendTag(to, of, protowire.VarintType), uint64(n))
	}
	text := func(to []byte, of protowire.Number, value []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(to, of, protowire.BytesType), value)
	}
	all := text(nil, 1, meta)
	all = text(all, 2, protowire.AppendFixed32(protowire.AppendTag(number(nil, 1, s.wanted), 9, protowire.Fixed32Type), 5))
	all = text(all, 3, text(number(nil, 1, s.observed), 2, []byte(s.selector)))
	return text(number(all, 8, 1), 9, []byte("later")), nil
}

// A typed client's UpdateScale sends a Scale of its own, whatever the kind.
func TestDecoders_MakeJSONOfScales(t *testing.T) {
	decode := protobuf.Decoders[Thing]("Thing")[protobuf.MediaType]
	text, err := decode(message(t, "autoscaling/v1", "Scale", scale{"a", 3, 2, "app=a"}))
	require.NoError(t, err)
	require.JSONEq(t, `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a"},"spec":{"replicas":3},"status":{"replicas":2,"selector":"app=a"}}`, string(text))
	text, err = decode(message(t, "autoscaling/v1", "Scale", scale{wanted: -1}))
	require.NoError(t, err)
	require.Contains(t, string(text), `"spec":{"replicas":-1}`)
}

// raw is a message as it is sent.
type raw []byte

func (r raw) Marshal() ([]byte, error) { return r, nil }

func TestDecoders_RefuseWhatIsNoMessageOfTheKind(t *testing.T) {
	decode := protobuf.Decoders[Thing]("Thing")[protobuf.MediaType]
	whole := message(t, "example.com/v1", "Thing", &Thing{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	for name, body := range map[string][]byte{
		"nothing": nil, "JSON": []byte(`{"kind":"Thing"}`), "no envelope": []byte("k8s\x00\xff"), "torn": whole[:len(whole)-3],
		"torn inside": message(t, "example.com/v1", "Thing", raw{0x0a, 0x05, 0x01}), "a byte short": message(t, "example.com/v1", "Thing", raw{0x0a, 0x02, 0x01}), "torn scale": message(t, "autoscaling/v1", "Scale", raw{0x0a, 0x05, 0x01}),
		"scale without a tag": message(t, "autoscaling/v1", "Scale", raw{0x80}), "torn spec": message(t, "autoscaling/v1", "Scale", raw{0x12, 0x01, 0x08}), "a field of a type that there is not": message(t, "example.com/v1", "Thing", raw{0x0f, 0x00}),
		// Bytes in place of a number, and so on: a Scale of 0 replicas is not what was sent.
		"replicas of another type": message(t, "autoscaling/v1", "Scale", raw{0x12, 0x03, 0x0a, 0x01, 0x05}), "a spec that is a number": message(t, "autoscaling/v1", "Scale", raw{0x10, 0x05}),
		"a selector that is a number": message(t, "autoscaling/v1", "Scale", raw{0x1a, 0x02, 0x10, 0x05}),
	} {
		_, err := decode(body)
		require.Error(t, err, name)
	}
	_, err := decode(message(t, "v1", "Pod", &Thing{}))
	require.ErrorContains(t, err, `it is a "Pod": send a Thing, a Scale or DeleteOptions`)
}

// chain is a kind whose objects may have one of the kind in them, as schemas have.
type chain struct {
	metav1.TypeMeta `json:",inline"`
	Next            *chain `json:"next,omitempty"`
}

func (c *chain) Unmarshal(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	_, _, tag := protowire.ConsumeTag(data)
	next, size := protowire.ConsumeBytes(data[tag:])
	if size < 0 {
		return protowire.ParseError(size)
	}
	c.Next = &chain{}
	return c.Next.Unmarshal(next)
}

// The code that reads messages calls itself for each that is in another. A stack that is too large ends
// the program, whatever recovers from panics.
func TestDecoders_RefuseWhatIsNestedTooDeep(t *testing.T) {
	decode := protobuf.Decoders[chain]("Chain")[protobuf.MediaType]
	nested := func(depth int, tag ...byte) []byte {
		var text []byte
		for range depth {
			text = append(protowire.AppendVarint(bytes.Clone(tag), uint64(len(text))), text...)
		}
		return message(t, "example.com/v1", "Chain", raw(text))
	}
	_, err := decode(nested(1000, 0x0a))
	require.NoError(t, err)
	for name, tag := range map[string][]byte{
		"as usual": {0x0a}, "with a number before each": {0x10, 0x05, 0x0a}, "with a group before each": {0x1b, 0x1c, 0x0a},
		"with a negative number before each":              {0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x0a},
		"with a number of a field that has too many bits": {0x8a, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01},
	} {
		_, err := decode(nested(3000, tag...))
		require.ErrorContains(t, err, "nested more than 1000 deep", name)
	}
	text := strings.Repeat("\n\x02\n\x00", 1<<16)
	body, err := protobuf.Decoders[Thing]("Thing")[protobuf.MediaType](message(t, "example.com/v1", "Thing", &Thing{ObjectMeta: metav1.ObjectMeta{Name: text}}))
	require.NoError(t, err, "a text may look like messages")
	require.Contains(t, string(body), `"name":"`)
}

func FuzzDecoders(f *testing.F) {
	f.Add(message(f, "example.com/v1", "Thing", &Thing{ObjectMeta: metav1.ObjectMeta{Name: "a"}}))
	f.Add(message(f, "v1", "DeleteOptions", &metav1.DeleteOptions{}))
	f.Add(message(f, "autoscaling/v1", "Scale", scale{"a", 3, 2, "app=a"}))
	decode := protobuf.Decoders[Thing]("Thing")[protobuf.MediaType]
	f.Fuzz(func(t *testing.T, body []byte) {
		if text, err := decode(body); err == nil {
			require.Contains(t, string(text), `"kind":`)
		}
	})
}
