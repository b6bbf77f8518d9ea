"""Reading: files to documents, and documents to chunks.

Text and Markdown are read verbatim, with line breaks as `open()` reads them. HTML is read as the
text of its elements, and PDF as the text of its pages, separated by form feeds. Office files, books
and notebooks are read as Markdown, and tables and JSON as records. The offsets of citations count
characters of this text. Readers also find headings, at which documents are split.
"""
