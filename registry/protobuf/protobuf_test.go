package protobuf_test

import (
	"testing"

	"github.com/stretchr/testify/require"
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

func TestDecoders_RefuseWhatIsNoMessageOfTheKind(t *testing.T) {
	decode := protobuf.Decoders[Thing]("Thing")[protobuf.MediaType]
	whole := message(t, "example.com/v1", "Thing", &Thing{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	for name, body := range map[string][]byte{
		"nothing": nil, "JSON": []byte(`{"kind":"Thing"}`), "no envelope": []byte("k8s\x00\xff"), "torn": whole[:len(whole)-3],
		"torn inside": message(t, "example.com/v1", "Thing", torn{}),
	} {
		_, err := decode(body)
		require.Error(t, err, name)
	}
	_, err := decode(message(t, "v1", "Pod", &Thing{}))
	require.ErrorContains(t, err, `it is a "Pod": send a Thing or DeleteOptions`)
}

// torn marshals to a message that ends within a field.
type torn struct{}

func (torn) Marshal() ([]byte, error) { return []byte{0x0a, 0x05, 0x01}, nil }

func FuzzDecoders(f *testing.F) {
	f.Add(message(f, "example.com/v1", "Thing", &Thing{ObjectMeta: metav1.ObjectMeta{Name: "a"}}))
	f.Add(message(f, "v1", "DeleteOptions", &metav1.DeleteOptions{}))
	decode := protobuf.Decoders[Thing]("Thing")[protobuf.MediaType]
	f.Fuzz(func(t *testing.T, body []byte) {
		if text, err := decode(body); err == nil {
			require.Contains(t, string(text), `"kind":`)
		}
	})
}
