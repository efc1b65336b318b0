package protobuf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// MediaType is the media type of Kubernetes' protobuf.
const MediaType = runtime.ContentTypeProtobuf

// Message constrains the pointer to a Go type that has protobuf methods, such as the types of
// k8s.io/api. Go infers it.
type Message[T any] interface {
	*T
	Unmarshal(data []byte) error
	GetObjectKind() schema.ObjectKind
}

// Decoders returns the decoder of a kind's objects, of the DeleteOptions that are sent to delete
// them, and of their Scales, for registry.Config.Decoders. kind is the name in camel case, such
// as "ConfigMap". The decoder refuses messages of other kinds. It is safe for concurrent use.
func Decoders[T any, P Message[T]](kind string) map[string]func(body []byte) ([]byte, error) {
	return map[string]func(body []byte) ([]byte, error){MediaType: func(body []byte) ([]byte, error) {
		envelope, err := open(body)
		if err != nil {
			return nil, err
		}
		switch envelope.Kind {
		case kind:
			return toJSON[T, P](envelope)
		case "DeleteOptions":
			return toJSON[metav1.DeleteOptions](envelope)
		case "Scale":
			return toJSON[scale](envelope)
		}
		return nil, fmt.Errorf("it is a %q: send a %s, a Scale or DeleteOptions", envelope.Kind, kind)
	}}
}

// magic begins every message.
var magic = []byte("k8s\x00")

var errNoMessage = errors.New("it does not begin as Kubernetes' protobuf does")

// open returns the envelope that a body holds.
func open(body []byte) (*runtime.Unknown, error) {
	rest, ok := bytes.CutPrefix(body, magic)
	if !ok {
		return nil, errNoMessage
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(rest); err != nil {
		return nil, err
	}
	return &envelope, nil
}

// toJSON returns the JSON of the message in an envelope, with its apiVersion and kind, which the
// message itself does not have.
func toJSON[T any, P Message[T]](envelope *runtime.Unknown) ([]byte, error) {
	if err := checkNesting(envelope.Raw); err != nil {
		return nil, err
	}
	message := P(new(T))
	if err := message.Unmarshal(envelope.Raw); err != nil {
		return nil, err
	}
	message.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(envelope.APIVersion, envelope.Kind))
	return json.Marshal(message)
}
