package protobuf_test

import (
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
		"torn inside": message(t, "example.com/v1", "Thing", raw{0x0a, 0x05, 0x01}), "torn scale": message(t, "autoscaling/v1", "Scale", raw{0x0a, 0x05, 0x01}),
		"scale without a tag": message(t, "autoscaling/v1", "Scale", raw{0x80}), "torn spec": message(t, "autoscaling/v1", "Scale", raw{0x12, 0x01, 0x08}),
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
