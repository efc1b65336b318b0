package protobuf

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// scale is a Scale of autoscaling/v1, which typed clients send to set the number of replicas of
// a kind. The Go type that Kubernetes has for it needs those of pods.
type scale struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Replicas int32 `json:"replicas"`
	} `json:"spec"`
	Status struct {
		Replicas int32  `json:"replicas"`
		Selector string `json:"selector,omitempty"`
	} `json:"status"`
}

// wires are the wire types of the fields of a message, by number.
type wires map[protowire.Number]protowire.Type

// The fields that are read.
var (
	scaleWires  = wires{1: protowire.BytesType, 2: protowire.BytesType, 3: protowire.BytesType} // metadata, spec, status
	specWires   = wires{1: protowire.VarintType}                                                // replicas
	statusWires = wires{1: protowire.VarintType, 2: protowire.BytesType}                        // replicas, selector
)

// Unmarshal reads the message.
func (s *scale) Unmarshal(data []byte) error {
	return eachField(data, scaleWires, func(of protowire.Number, message []byte, _ uint64) error {
		switch of {
		case 1:
			return s.ObjectMeta.Unmarshal(message)
		case 2:
			return eachField(message, specWires, s.setSpec)
		default:
			return eachField(message, statusWires, s.setStatus)
		}
	})
}

func (s *scale) setSpec(_ protowire.Number, _ []byte, n uint64) error {
	s.Spec.Replicas = int32(n)
	return nil
}

func (s *scale) setStatus(of protowire.Number, text []byte, n uint64) error {
	if of == 1 {
		s.Status.Replicas = int32(n)
	} else {
		s.Status.Selector = string(text)
	}
	return nil
}

// eachField calls set with those fields of a message that known has: each has bytes or a number.
// Others are of later versions, and skipped.
func eachField(message []byte, known wires, set func(of protowire.Number, text []byte, n uint64) error) error {
	for len(message) > 0 {
		of, wire, size := protowire.ConsumeTag(message)
		if size < 0 {
			return protowire.ParseError(size)
		}
		message = message[size:]
		expected, isKnown := known[of]
		if isKnown && wire != expected {
			return fmt.Errorf("the wire type of field %d is %d, and not %d", of, wire, expected)
		}
		var text []byte
		var n uint64
		switch {
		case !isKnown:
			size = protowire.ConsumeFieldValue(of, wire, message)
		case wire == protowire.BytesType:
			text, size = protowire.ConsumeBytes(message)
		default:
			n, size = protowire.ConsumeVarint(message)
		}
		if size < 0 {
			return protowire.ParseError(size)
		}
		message = message[size:]
		if !isKnown {
			continue
		}
		if err := set(of, text, n); err != nil {
			return err
		}
	}
	return nil
}
