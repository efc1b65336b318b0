package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/watchmill/watchmill/registry"
)

// jsonType is the media type of most documents.
const jsonType = "application/json"

// Document is an answer that never changes.
type Document struct {
	Body        []byte
	ContentType string
	// ETag identifies the body, in quotes as the header has it.
	ETag string
}

// Catalog is all documents. Its owner may add others before it serves them; from then on they
// must not be changed, and are safe for concurrent use.
type Catalog struct {
	ByPath map[string]*Document
	// Aggregated are those for clients that ask for aggregated discovery, by path.
	Aggregated map[string]*Document
	// V2JSON and V2Protobuf return the document of OpenAPI v2, which describes the kinds of all
	// groups and which few clients read. It is made at the first call.
	V2JSON, V2Protobuf func() *Document
}

// New returns the documents of the resources, which must be distinct. Version is that of
// the protocol, for OpenAPI. A subresource without its kind is left out.
func New(resources []*registry.Info, version string) *Catalog {
	c := &Catalog{ByPath: map[string]*Document{}, Aggregated: map[string]*Document{}}
	groups := groupsOf(resources)
	c.addDiscovery(groups)
	c.addOpenAPI(groups, version)
	return c
}

// add adds a document of value as JSON at path.
func (c *Catalog) add(path string, value any) {
	c.ByPath[path] = NewDocument(value, jsonType)
}

// NewDocument returns a document of value as JSON. Value is made of strings and of valid JSON.
func NewDocument(value any, contentType string) *Document {
	body, err := json.Marshal(value)
	if err != nil {
		body = []byte("{}") // cannot happen: documents are made of strings and of JSON
	}
	return newDocument(body, contentType)
}

func newDocument(body []byte, contentType string) *Document {
	sum := sha256.Sum256(body)
	return &Document{Body: body, ContentType: contentType, ETag: `"` + strings.ToUpper(hex.EncodeToString(sum[:])) + `"`}
}
