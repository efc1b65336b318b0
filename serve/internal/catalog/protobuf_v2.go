package catalog

import (
	"encoding/json"
	"iter"
	"maps"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// v2Protobuf is the media type of documents of OpenAPI v2 in protobuf. Some clients write
// an @ in place of its last dot but one.
const v2Protobuf = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

// wire is a message of protobuf. The messages of OpenAPI v2 are gnostic's. These are their
// fields that are written:
//
//	Document   1 swagger  2 info  7 produces  8 paths  9 definitions
//	Info       1 title  2 version
//	Paths      2 NamedPathItem
//	PathItem   2 get  3 put  4 post  5 delete  8 patch
//	Operation  3 description  8 parameters  9 responses  13 extensions
//	Responses  1 NamedResponseValue
//	Response   1 description  2 schema
//
// A named value is a message of 1 name and 2 value, and a value of any kind is 2 YAML, which JSON
// is. The words of schemas have their numbers with them. A message around another one chooses its
// form: a parameter is within 1 parameter, then within 2 if it is not in the body, and then within
// 3 if it is in the query, or 4 if in the path.
//
// A message keeps those within it apart until its length is known: a schema may be thousands deep,
// and is copied once.
type wire struct {
	fields   []byte
	messages []numbered
	inner    int // the bytes that messages take
}

// numbered is a message within another one.
type numbered struct {
	number protowire.Number
	wire
}

// methodNumbers are the numbers of methods in a PathItem.
var methodNumbers = map[string]protowire.Number{"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}

// protobuf returns the document as protobuf.
func (doc *swagger) protobuf() []byte {
	var w wire
	w.text(1, doc.Swagger)
	w.message(2, func(w *wire) {
		w.text(1, doc.Info.Title)
		w.text(2, doc.Info.Version)
	})
	for _, media := range doc.Produces {
		w.text(7, media)
	}
	w.message(8, func(w *wire) {
		for path, item := range sorted(doc.Paths) {
			w.named(2, path, func(w *wire) {
				for method, op := range sorted(item) {
					w.message(methodNumbers[method], func(w *wire) { w.operation(&op) })
				}
			})
		}
	})
	w.message(9, func(w *wire) { w.schemas(doc.Definitions) })
	return w.appendTo(make([]byte, 0, w.size()))
}

func (w *wire) operation(op *operation[parameterV2, answerV2]) {
	w.text(3, op.Description)
	for _, p := range op.Parameters {
		w.message(8, func(w *wire) { w.message(1, func(w *wire) { w.message(2, func(w *wire) { w.parameter(&p) }) }) })
	}
	w.message(9, func(w *wire) {
		for code, answer := range sorted(op.Responses) {
			w.named(1, code, func(w *wire) { w.message(1, func(w *wire) { w.answer(&answer) }) })
		}
	})
	w.named(13, "x-kubernetes-action", func(w *wire) { w.yaml(op.Action) })
	w.named(13, "x-kubernetes-group-version-kind", func(w *wire) { w.yaml(op.Kind) })
}

func (w *wire) parameter(p *parameterV2) {
	form, kind := protowire.Number(3), protowire.Number(6)
	if p.In == "path" {
		form, kind = 4, 5
	}
	w.message(form, func(w *wire) {
		w.flag(1, p.Required)
		w.text(2, p.In)
		w.text(4, p.Name)
		w.text(kind, p.Type)
	})
}

func (w *wire) answer(a *answerV2) {
	w.text(1, a.Description)
	w.message(2, func(w *wire) { w.message(1, func(w *wire) { w.schema(a.Schema) }) })
}

// schemas appends named schemas: definitions or properties.
func (w *wire) schemas(all map[string]schemaV2) {
	for name, s := range sorted(all) {
		w.named(1, name, func(w *wire) { w.schema(s) })
	}
}

func (w *wire) schema(s schemaV2) {
	for name, value := range sorted(s) {
		if of, known := words[name]; known {
			w.word(of, value)
		} else {
			w.named(31, name, func(w *wire) { w.yaml(value) })
		}
	}
}

// word appends a word of a schema. Its value is what the conversion of schemas has made it.
func (w *wire) word(of word, value any) {
	switch of.value {
	case aText:
		w.text(of.number, value.(string))
	case aBool:
		w.flag(of.number, value.(bool))
	case aNumber:
		n, _ := value.(json.Number).Float64()
		w.fields = protowire.AppendFixed64(protowire.AppendTag(w.fields, of.number, protowire.Fixed64Type), math.Float64bits(n))
	case anInteger:
		n, _ := value.(json.Number).Int64()
		w.fields = protowire.AppendVarint(protowire.AppendTag(w.fields, of.number, protowire.VarintType), uint64(n))
	case aType:
		w.message(of.number, func(w *wire) { w.text(1, value.(string)) })
	case texts:
		for _, text := range value.([]any) {
			w.text(of.number, text.(string))
		}
	case anyValue:
		w.message(of.number, func(w *wire) { w.yaml(value) })
	case anyValues:
		for _, one := range value.([]any) {
			w.message(of.number, func(w *wire) { w.yaml(one) })
		}
	case aSchema:
		w.message(of.number, func(w *wire) { w.message(1, func(w *wire) { w.schema(value.(schemaV2)) }) })
	case aBoolOrSchema:
		w.message(of.number, func(w *wire) {
			if allowed, ok := value.(bool); ok {
				w.flag(2, allowed)
			} else {
				w.message(1, func(w *wire) { w.schema(value.(schemaV2)) })
			}
		})
	case schemas:
		w.message(of.number, func(w *wire) { w.schemas(value.(map[string]schemaV2)) })
	}
}

// yaml appends a value of any kind.
func (w *wire) yaml(value any) {
	text, _ := json.Marshal(value) // cannot fail: it was JSON
	w.text(2, string(text))
}

func (w *wire) text(number protowire.Number, text string) {
	w.fields = protowire.AppendString(protowire.AppendTag(w.fields, number, protowire.BytesType), text)
}

func (w *wire) flag(number protowire.Number, value bool) {
	w.fields = protowire.AppendVarint(protowire.AppendTag(w.fields, number, protowire.VarintType), protowire.EncodeBool(value))
}

// message appends a message within the message.
func (w *wire) message(number protowire.Number, write func(*wire)) {
	m := numbered{number: number}
	write(&m.wire)
	w.messages = append(w.messages, m)
	w.inner += protowire.SizeTag(number) + protowire.SizeBytes(m.size())
}

func (w *wire) size() int { return len(w.fields) + w.inner }

func (w *wire) appendTo(out []byte) []byte {
	out = append(out, w.fields...)
	for i := range w.messages {
		m := &w.messages[i]
		out = protowire.AppendVarint(protowire.AppendTag(out, m.number, protowire.BytesType), uint64(m.size()))
		out = m.appendTo(out)
	}
	return out
}

// named appends a value with its name.
func (w *wire) named(number protowire.Number, name string, write func(*wire)) {
	w.message(number, func(w *wire) {
		w.text(1, name)
		w.message(2, write)
	})
}

// sorted returns the elements of a map by their keys.
func sorted[M ~map[string]V, V any](m M) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}
