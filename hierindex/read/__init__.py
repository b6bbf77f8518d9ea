"""Reading: files to documents, and documents to chunks.

Text and Markdown are read verbatim, with line breaks as `open()` reads them; HTML as the text of
its elements; PDF as the text of its pages, separated by form feeds; files of office programs, books
and notebooks as Markdown; tables and JSON as records. The offsets of citations
count characters of this text. Readers also find headings, at which documents are split.
"""
