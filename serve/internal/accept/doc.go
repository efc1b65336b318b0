// Package accept reads which form of an answer the client prefers.
//
//	Accept ──▶ clauses, the best first ──▶ the first that is served ──▶ Shape, and whether objects are lean
//	               application/json                                        Whole
//	               application/json;as=Table;g=meta.k8s.io;v=v1            Table
//	               application/json;as=PartialObjectMetadata;...           Partial
//	               text/event-stream, of a watch                           Events
//	               none is served                                          406
//
//	Accept-Encoding ──▶ Gzip
package accept
